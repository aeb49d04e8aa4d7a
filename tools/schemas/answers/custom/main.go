// Command custom says what Kubernetes' own code makes of custom resources: whether their definition
// is in order, what pruning and defaulting leave of an object, and what validation says. It reads
// one question a line, {crd, object, old}, and writes one answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

type ask struct {
	CRD    json.RawMessage `json:"crd"`
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`
}

func main() {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<24)
	for in.Scan() {
		var a ask
		_ = json.Unmarshal(in.Bytes(), &a)
		out := map[string]any{}
		obj, _, err := codecs.UniversalDecoder().Decode(a.CRD, nil, nil)
		if err != nil {
			out["error"] = err.Error()
			print(out)
			continue
		}
		crd := obj.(*apiextensions.CustomResourceDefinition)
		for _, v := range crd.Spec.Versions {
			if v.Storage {
				crd.Status.StoredVersions = []string{v.Name}
			}
		}
		out["crd"] = list(validation.ValidateCustomResourceDefinition(context.Background(), crd))
		if len(a.Object) > 0 && string(a.Object) != "null" {
			cr(crd, a, out)
		}
		print(out)
	}
}

func cr(crd *apiextensions.CustomResourceDefinition, a ask, out map[string]any) {
	defer func() {
		if r := recover(); r != nil {
			out["panic"] = fmt.Sprint(r)
		}
	}()
	var v1crd apiextv1.CustomResourceDefinition
	_ = json.Unmarshal(a.CRD, &v1crd)
	var internal apiextensions.CustomResourceValidation
	_ = apiextv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v1crd.Spec.Versions[0].Schema, &internal, nil)
	s, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		out["error"] = err.Error()
		return
	}
	validator, _, _ := apiservervalidation.NewSchemaValidator(internal.OpenAPIV3Schema)
	var m map[string]any
	_ = utiljson.Unmarshal(a.Object, &m)
	out["unknown"] = pruning.PruneWithOptions(m, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(m, s)
	defaulting.Default(m, s)
	var errs field.ErrorList
	errs = append(errs, apiservervalidation.ValidateCustomResource(nil, m, validator)...)
	errs = append(errs, objectmeta.Validate(nil, m, s, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s, m)...)
	cv := cel.NewValidator(s, true, celconfig.PerCallLimit)
	if cv != nil && len(errs) == 0 {
		var old any
		if len(a.Old) > 0 && string(a.Old) != "null" {
			var o map[string]any
			_ = utiljson.Unmarshal(a.Old, &o)
			old = o
		}
		e, _ := cv.Validate(context.Background(), nil, s, m, old, celconfig.RuntimeCELCostBudget)
		errs = append(errs, e...)
	}
	out["errors"] = list(errs)
	out["object"] = m
}

func list(l field.ErrorList) []string {
	r := []string{}
	for _, e := range l {
		r = append(r, e.Error())
	}
	return r
}
func print(v any) { b, _ := json.Marshal(v); fmt.Println(string(b)) }
