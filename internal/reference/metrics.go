package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type metric struct {
	name, kind, help string
	labels           []string
}

type source struct {
	// lists has the package's variables that are lists of strings. Several metrics may use one as
	// their labels.
	lists map[string][]string
	found []metric
	fault error
}

var kinds = map[string]string{
	"NewCounterVec": "counter", "NewCounter": "counter", "NewGaugeVec": "gauge", "NewGauge": "gauge",
	"NewHistogramVec": "histogram", "NewHistogram": "histogram", "NewDesc": "gauge",
	"NewGaugeFunc": "gauge", "NewCounterFunc": "counter",
}

func metricsOf(folders ...string) ([]metric, error) {
	packages := map[string][]*ast.File{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var out []metric
	for folder, files := range packages {
		s := source{lists: map[string][]string{}}
		for _, f := range files {
			ast.Inspect(f, s.list)
		}
		for _, f := range files {
			ast.Inspect(f, s.metric)
		}
		if s.fault != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", folder, s.fault)
		}
		out = append(out, s.found...)
	}
	slices.SortFunc(out, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func (s *source) list(n ast.Node) bool {
	v, ok := n.(*ast.ValueSpec)
	if !ok {
		return true
	}
	for i, value := range v.Values {
		if literal, ok := value.(*ast.CompositeLit); ok && i < len(v.Names) {
			if texts, err := s.texts(literal); err == nil {
				s.lists[v.Names[i].Name] = texts
			}
		}
	}
	return true
}

func (s *source) metric(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || s.fault != nil {
		return true
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || kinds[of.Sel.Name] == "" || len(call.Args) == 0 {
		return true
	}
	if pkg, ok := of.X.(*ast.Ident); !ok || pkg.Name != "prometheus" {
		return true
	}
	m := metric{kind: kinds[of.Sel.Name]}
	labels := call.Args[1:]
	if of.Sel.Name == "NewDesc" {
		m.name, m.help = s.text(call.Args[0]), s.text(call.Args[1])
		labels = call.Args[2:3]
	} else {
		m.name, m.help = s.option(call.Args[0], "Name"), s.option(call.Args[0], "Help")
	}
	if strings.HasSuffix(of.Sel.Name, "Func") {
		labels = nil // the second argument is the function for the value
	}
	if len(labels) > 0 {
		texts, err := s.texts(labels[0])
		if err != nil {
			s.fault = err
		}
		m.labels = texts
	}
	m.labels = append(m.labels, s.constant(call.Args[0])...)
	s.found = append(s.found, m)
	return true
}

func (s *source) option(options ast.Expr, name string) string {
	for _, e := range elements(options) {
		if e.Key.(*ast.Ident).Name == name {
			return s.text(e.Value)
		}
	}
	s.fault = fmt.Errorf("a metric without %s", name)
	return ""
}

// constant returns the labels whose values never change.
func (s *source) constant(options ast.Expr) (out []string) {
	for _, e := range elements(options) {
		if e.Key.(*ast.Ident).Name != "ConstLabels" {
			continue
		}
		for _, label := range elements(e.Value) {
			out = append(out, s.text(label.Key))
		}
	}
	return out
}

func elements(x ast.Expr) (out []*ast.KeyValueExpr) {
	literal, ok := x.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range literal.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			out = append(out, pair)
		}
	}
	return out
}

func (s *source) text(x ast.Expr) string {
	literal, ok := x.(*ast.BasicLit)
	if !ok {
		s.fault = fmt.Errorf("write the names and help texts of metrics as literals, not as %T", x)
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		s.fault = err
	}
	return text
}

func (s *source) texts(x ast.Expr) ([]string, error) {
	if name, ok := x.(*ast.Ident); ok {
		list, known := s.lists[name.Name]
		if !known && name.Name != "nil" {
			return nil, fmt.Errorf("the labels %s are not a package-level list of literals", name.Name)
		}
		return list, nil
	}
	literal, ok := x.(*ast.CompositeLit)
	if !ok {
		return nil, fmt.Errorf("write the labels of metrics as literals, not as %T", x)
	}
	var out []string
	for _, e := range literal.Elts {
		text, ok := e.(*ast.BasicLit)
		if !ok {
			return nil, fmt.Errorf("write the labels of metrics as literals, not as %T", e)
		}
		one, err := strconv.Unquote(text.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}
