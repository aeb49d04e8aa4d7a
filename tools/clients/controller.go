package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"time"
)

var gadgets = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Gadget"}

// control installs the CRD of gadgets and keeps, for each gadget, a ConfigMap that it owns.
func control(config *rest.Config) error {
	log.SetLogger(logr.Discard())
	ctx := signals.SetupSignalHandler()
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	if err := install(ctx, config); err != nil {
		return err
	}
	m, err := manager.New(config, manager.Options{
		Scheme:                  scheme.Scheme,
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "gadgets",
		LeaderElectionNamespace: "default",
	})
	if err != nil {
		return err
	}
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(gadgets)
	err = builder.ControllerManagedBy(m).For(gadget).Owns(&core.ConfigMap{}).
		Complete(&reconciler{m.GetClient()})
	if err != nil {
		return err
	}
	fmt.Println("installed")
	return m.Start(ctx)
}

func install(ctx context.Context, config *rest.Config) error {
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := clients.ApiextensionsV1().CustomResourceDefinitions()
	if _, err = crds.Create(ctx, crd(), metav1.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true,
		func(ctx context.Context) (bool, error) {
			found, err := crds.Get(ctx, crd().Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, c := range found.Status.Conditions {
				if c.Type == apiextensions.Established && c.Status == apiextensions.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
}

func crd() *apiextensions.CustomResourceDefinition {
	least, yes := 1.0, true
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.org"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: gadgets.Group,
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: gadgets.Version, Served: true, Storage: true,
				Subresources: &apiextensions.CustomResourceSubresources{
					Status: &apiextensions.CustomResourceSubresourceStatus{},
					Scale: &apiextensions.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size",
					},
				},
				Schema: &apiextensions.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
						Type: "object",
						Properties: map[string]apiextensions.JSONSchemaProps{
							"spec": {
								Type: "object",
								Properties: map[string]apiextensions.JSONSchemaProps{
									"size": {
										Type: "integer", Minimum: &least,
										Default: &apiextensions.JSON{Raw: []byte("3")},
									},
									"names": {
										Type: "array",
										Items: &apiextensions.JSONSchemaPropsOrArray{
											Schema: &apiextensions.JSONSchemaProps{Type: "string"},
										},
									},
									"weights": {
										Type: "object",
										AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{
											Schema: &apiextensions.JSONSchemaProps{Type: "integer"},
										},
									},
								},
							},
							"status": {Type: "object", XPreserveUnknownFields: &yes},
						},
					},
				},
			}},
		},
	}
}

type reconciler struct{ runtimeclient.Client }

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(gadgets)
	if err := r.Get(ctx, request.NamespacedName, gadget); err != nil {
		return reconcile.Result{}, runtimeclient.IgnoreNotFound(err)
	}
	size, _, err := unstructured.NestedInt64(gadget.Object, "spec", "size")
	if err != nil {
		return reconcile.Result{}, err
	}
	config := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: request.Name, Namespace: request.Namespace}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"size": fmt.Sprint(size)}
		return controllerutil.SetControllerReference(gadget, config, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	before := gadget.DeepCopy()
	if err := unstructured.SetNestedField(gadget.Object, size, "status", "size"); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Status().Patch(ctx, gadget, runtimeclient.MergeFrom(before))
}
