// Command builtin says what Kubernetes' own code makes of objects: their form after defaulting, and
// what its validation says. It reads one JSON object a line and writes one answer a line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
)

func validate(obj runtime.Object) field.ErrorList {
	switch o := obj.(type) {
	case *core.Pod:
		opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&o.Spec, nil, &o.ObjectMeta, nil)
		opts.ResourceIsPod = true
		return validation.ValidatePodCreate(o, opts)
	case *core.Service:
		return validation.ValidateServiceCreate(o)
	case *core.ConfigMap:
		return validation.ValidateConfigMap(o)
	case *core.Secret:
		return validation.ValidateSecret(o)
	case *core.Node:
		return validation.ValidateNode(o)
	case *core.Namespace:
		return validation.ValidateNamespace(o)
	case *core.PersistentVolumeClaim:
		return validation.ValidatePersistentVolumeClaim(o, validation.ValidationOptionsForPersistentVolumeClaimCreate())
	case *apps.Deployment:
		opts := podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil)
		return appsvalidation.ValidateDeployment(o, opts)
	case *apps.StatefulSet:
		opts := podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil)
		return appsvalidation.ValidateStatefulSet(o, opts)
	case *apps.DaemonSet:
		opts := podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil)
		return appsvalidation.ValidateDaemonSet(o, opts)
	case *apps.ReplicaSet:
		opts := podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil)
		return appsvalidation.ValidateReplicaSet(o, opts)
	case *batch.Job:
		return batchvalidation.ValidateJob(o, batchvalidation.JobValidationOptions{})
	case *batch.CronJob:
		opts := podutil.GetValidationOptionsFromPodTemplate(&o.Spec.JobTemplate.Spec.Template, nil)
		return batchvalidation.ValidateCronJobCreate(o, opts)
	case *rbac.Role:
		return rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		return rbacvalidation.ValidateRoleBinding(o)
	}
	return nil
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<24)
	for in.Scan() {
		line := in.Bytes()
		var tm runtime.TypeMeta
		_ = json.Unmarshal(line, &tm)
		gv, _ := schema.ParseGroupVersion(tm.APIVersion)
		obj, _, err := legacyscheme.Codecs.UniversalDecoder().Decode(line, nil, nil)
		if err != nil {
			fmt.Println(toJSON(map[string]any{"error": err.Error()}))
			continue
		}
		errs := []string{}
		for _, e := range validate(obj) {
			errs = append(errs, e.Error())
		}
		out, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(gv), obj)
		var m any
		_ = json.Unmarshal(out, &m)
		fmt.Println(toJSON(map[string]any{"object": m, "errors": errs}))
	}
}

func toJSON(v any) string { b, _ := json.Marshal(v); return string(b) }
