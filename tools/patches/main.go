// Command patches answers, with Kubernetes' own code, what a patch makes of a pod.
//
// It reads JSON lines on standard input. A list of steps is a history of server-side applies and
// updates of one object, answered by a list of its states; an object {original, patch} is a
// strategic merge patch, answered by the outcome. Its argument is an OpenAPI v3 document.
package main

import (
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const pod = "io.k8s.api.core.v1.Pod"

type object = map[string]interface{}

type step struct {
	Op, Manager string
	Force       bool
	Object      object
}

type merge struct {
	Original, Patch object
}

func main() {
	raw, err := os.ReadFile(os.Args[1])
	check(err)
	var document struct {
		Components struct{ Schemas map[string]*spec.Schema }
	}
	check(json.Unmarshal(raw, &document))
	schemas := document.Components.Schemas
	meta := strategicpatch.PatchMetaFromOpenAPIV3{Schema: schemas[pod], SchemaList: schemas}
	for _, s := range schemas {
		withoutChoices(s)
	}
	converter, err := managedfields.NewTypeConverter(schemas, false)
	check(err)
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var line json.RawMessage
		check(in.Decode(&line))
		if line[0] == '[' {
			var steps []step
			check(json.Unmarshal(line, &steps))
			check(out.Encode(play(converter, steps)))
			continue
		}
		var m merge
		check(json.Unmarshal(line, &m))
		result, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(m.Original, m.Patch, meta)
		if err != nil {
			result = object{"error": err.Error()}
		}
		check(out.Encode(result))
	}
}

func play(converter managedfields.TypeConverter, steps []step) []object {
	manager := managedfieldstest.NewFakeFieldManager(converter, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	var live runtime.Object = &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "Pod"}}
	states := []object{}
	for _, s := range steps {
		given := &unstructured.Unstructured{Object: s.Object}
		var next runtime.Object
		var err error
		if s.Op == "apply" {
			next, err = manager.Apply(live, given, s.Manager, s.Force)
		} else {
			next, err = manager.Update(live, given, s.Manager)
		}
		if err != nil {
			states = append(states, object{"error": err.Error()})
			continue
		}
		found := next.(*unstructured.Unstructured)
		managed := found.GetManagedFields()
		found.SetManagedFields(nil)
		withoutNulls(found.Object)
		// An object with a uid is one that exists.
		found.SetUID("u")
		found.SetManagedFields(managed)
		live = found
		states = append(states, found.DeepCopy().Object)
	}
	return states
}

// withoutNulls drops what a typed object would not have kept.
func withoutNulls(value interface{}) {
	switch v := value.(type) {
	case object:
		for key, child := range v {
			if child == nil {
				delete(v, key)
			} else {
				withoutNulls(child)
			}
		}
	case []interface{}:
		for _, child := range v {
			withoutNulls(child)
		}
	}
}

// withoutChoices makes quantities plain scalars, as the API server's own types have them.
func withoutChoices(s *spec.Schema) {
	if s == nil {
		return
	}
	s.OneOf = nil
	for name, member := range s.Properties {
		withoutChoices(&member)
		s.Properties[name] = member
	}
	if s.Items != nil {
		withoutChoices(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		withoutChoices(s.AdditionalProperties.Schema)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
