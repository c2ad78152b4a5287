// Podschema prints every JSON field path of a Kubernetes pod template, one a line.
//
// `a.b` is a field of a field, `a[]` an item of a list and `a{}` a value of a map. A type that
// writes its own JSON (a quantity, a time, a number or text) is one field. A type that holds
// itself is followed once.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const library = "k8s.io/api"

var marshaler = reflect.TypeFor[json.Marshaler]()

type schema struct {
	paths []string
	above map[reflect.Type]bool
}

func (s *schema) add(path string, kind reflect.Type) {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if kind.Implements(marshaler) || reflect.PointerTo(kind).Implements(marshaler) {
		return
	}
	switch kind.Kind() {
	case reflect.Slice:
		if kind.Elem().Kind() != reflect.Uint8 {
			s.add(path+"[]", kind.Elem())
		}
	case reflect.Map:
		s.paths = append(s.paths, path+"{}")
	case reflect.Struct:
		s.fields(path+".", kind)
	}
}

func (s *schema) fields(prefix string, kind reflect.Type) {
	if s.above[kind] {
		return
	}
	s.above[kind] = true
	defer delete(s.above, kind)
	for field := range kind.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (field.Anonymous || options == "inline"):
			s.fields(prefix, field.Type)
		default:
			s.paths = append(s.paths, prefix+name)
			s.add(prefix+name, field.Type)
		}
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == library {
			return module.Version
		}
	}
	return "of an unknown version"
}

func main() {
	s := schema{above: map[reflect.Type]bool{}}
	s.fields("", reflect.TypeFor[corev1.PodTemplateSpec]())
	fmt.Printf("# PodTemplateSpec of %s %s; made by `make pod-schema`.\n", library, version())
	if _, err := fmt.Println(strings.Join(s.paths, "\n")); err != nil {
		fmt.Fprintln(os.Stderr, "podschema:", err)
		os.Exit(1)
	}
}
