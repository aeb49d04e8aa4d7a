package main

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func init() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
}

// compare lists and watches every built-in resource in JSON and in protobuf, and says where what
// is read differs.
func compare(config *rest.Config) error {
	resources, err := served(config)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(resources))
	for name := range resources {
		names = append(names, name)
	}
	sort.Strings(names)
	objects := 0
	for _, name := range names {
		found, err := alike(config, resources[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		objects += found
	}
	fmt.Printf("compared %d resources with %d objects\n", len(names), objects)
	return nil
}

type resource struct {
	plural string
	gvk    schema.GroupVersionKind
}

func served(config *rest.Config) (map[string]resource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	found := map[string]resource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			gvk := gv.WithKind(r.Kind)
			known := scheme.Scheme.Recognizes(gvk)
			if !known || strings.Contains(r.Name, "/") || !has(r.Verbs, "list") {
				continue
			}
			found[r.Name+"."+gv.String()] = resource{r.Name, gvk}
		}
	}
	return found, nil
}

func has(verbs metav1.Verbs, verb string) bool {
	for _, v := range verbs {
		if v == verb {
			return true
		}
	}
	return false
}

func client(config *rest.Config, gv schema.GroupVersion, contentType string) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &gv, "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	c.ContentType, c.AcceptContentTypes = contentType, contentType
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	return rest.RESTClientFor(c)
}

// alike returns how many objects there are of a resource.
func alike(config *rest.Config, r resource) (int, error) {
	var lists []runtime.Object
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		c, err := client(config, r.gvk.GroupVersion(), contentType)
		if err != nil {
			return 0, err
		}
		got := ""
		result := c.Get().Resource(r.plural).Do(context.Background()).ContentType(&got)
		list, err := result.Get()
		if err != nil {
			return 0, err
		}
		if got != contentType {
			return 0, fmt.Errorf("the answer is %s instead of %s", got, contentType)
		}
		lists = append(lists, list)
	}
	items, err := meta.ExtractList(lists[0])
	if err != nil {
		return 0, err
	}
	others, err := meta.ExtractList(lists[1])
	if err != nil {
		return 0, err
	}
	if len(items) != len(others) {
		return 0, fmt.Errorf("%d objects in JSON, %d in protobuf", len(items), len(others))
	}
	for at := range items {
		if !same(items[at], others[at]) {
			return 0, fmt.Errorf("JSON says %+v, protobuf %+v", items[at], others[at])
		}
	}
	return len(items), streamed(config, r, items)
}

// streamed requires that a watch in protobuf begins with the same objects and a bookmark.
func streamed(config *rest.Config, r resource, items []runtime.Object) error {
	c, err := client(config, r.gvk.GroupVersion(), runtime.ContentTypeProtobuf)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	yes := true
	options := metav1.ListOptions{
		SendInitialEvents:    &yes,
		AllowWatchBookmarks:  true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		Watch:                true,
	}
	watch, err := c.Get().Resource(r.plural).VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Stop()
	for at := 0; ; at++ {
		event, open := <-watch.ResultChan()
		if !open {
			return fmt.Errorf("the watch ended after %d of %d objects", at, len(items))
		}
		if event.Type == "BOOKMARK" && at == len(items) {
			return nil
		}
		if event.Type != "ADDED" || at >= len(items) {
			return fmt.Errorf("event %d is %s %+v", at, event.Type, event.Object)
		}
		if !same(event.Object, items[at]) {
			return fmt.Errorf("the watch says %+v, the list %+v", event.Object, items[at])
		}
	}
}

// same leaves out the kinds of what is inside an object: JSON may say them, protobuf cannot.
func same(one, other runtime.Object) bool {
	type message interface{ Marshal() ([]byte, error) }
	first, err := one.(message).Marshal()
	if err != nil {
		return false
	}
	second, err := other.(message).Marshal()
	return err == nil && bytes.Equal(first, second)
}
