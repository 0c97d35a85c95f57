package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
)

type mutant struct {
	file     string
	function string
	line     int
	source   []byte
	from, to int // the position of the bytes that are replaced
	text     string
	kind     kind
	operator token.Token // the operator of a comparison or conjunction
	at       int         // the position of the operator
	// It distinguishes the mutant from others in its function that have the same text. The first
	// one has 1.
	nth int
}

// The name stays the same when the code around the mutant moves.
func (m mutant) name() string {
	name := fmt.Sprintf("%s %s: %s -> %s", m.file, m.function, oneLine(string(m.source[m.from:m.to])), oneLine(m.text))
	if m.nth > 1 {
		name += fmt.Sprintf(" #%d", m.nth)
	}
	return name
}

func (m mutant) String() string { return fmt.Sprintf("%s (line %d)", m.name(), m.line) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

type kind int

const (
	// never and always come in pairs, in this order, for each condition.
	never kind = iota
	always
	flipped // == and !=
	bounded // < and <=, > and >=
	joined  // && and ||
	dropped // one side of && or || is left out
)

var kinds = map[token.Token]kind{
	token.LSS: bounded, token.LEQ: bounded, token.GTR: bounded, token.GEQ: bounded,
	token.EQL: flipped, token.NEQ: flipped, token.LAND: joined, token.LOR: joined,
}

// Each comparison becomes one that differs slightly, or is the opposite.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
}

// The mutants are a condition that never holds, a condition that always holds, another comparison
// or conjunction, and a conjunction without one of its sides.
func mutantsOf(file string) ([]mutant, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, source, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var out []mutant
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		text := func(from, to token.Pos) string {
			return string(source[files.Position(from).Offset:files.Position(to).Offset])
		}
		same := map[string]int{}
		change := func(e ast.Expr, kind kind, text string) *mutant {
			m := mutant{
				file: file, function: f.Name.Name, line: files.Position(e.Pos()).Line, source: source, kind: kind,
				from: files.Position(e.Pos()).Offset, to: files.Position(e.End()).Offset, text: text,
			}
			name := m.name()
			same[name]++
			m.nth = same[name]
			out = append(out, m)
			return &out[len(out)-1]
		}
		// An alternative (||) within a conjunction (&&) needs brackets to keep its meaning.
		side := func(e ast.Expr, of token.Token) string {
			if inner, ok := e.(*ast.BinaryExpr); ok && inner.Op == token.LOR && of == token.LAND {
				return "(" + text(e.Pos(), e.End()) + ")"
			}
			return text(e.Pos(), e.End())
		}
		condition := func(e ast.Expr) {
			// The original condition stays in the text, so that the variables that only it uses are
			// still used.
			change(e, never, "false && ("+text(e.Pos(), e.End())+")")
			change(e, always, "true || ("+text(e.Pos(), e.End())+")")
		}
		drop := func(e ast.Expr, of token.Token) {
			if inner, ok := e.(*ast.BinaryExpr); ok && inner.Op == of {
				return // in a chain of operands, each operand is left out once
			}
			left := map[token.Token]string{token.LAND: "true || (", token.LOR: "false && ("}[of]
			change(e, dropped, left+text(e.Pos(), e.End())+")").operator = of
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				condition(n.Cond)
			case *ast.SwitchStmt:
				if n.Tag != nil {
					return true
				}
				for _, c := range n.Body.List {
					if list := c.(*ast.CaseClause).List; len(list) == 1 {
						condition(list[0])
					}
				}
			case *ast.BinaryExpr:
				if other, ok := swapped[n.Op]; ok {
					left, right := side(n.X, other), side(n.Y, other)
					m := change(n, kinds[n.Op], left+text(n.X.End(), n.OpPos)+other.String()+
						text(n.OpPos+token.Pos(len(n.Op.String())), n.Y.Pos())+right)
					m.operator, m.at = n.Op, files.Position(n.OpPos).Offset
				}
				if n.Op == token.LAND || n.Op == token.LOR {
					drop(n.X, n.Op)
					drop(n.Y, n.Op)
				}
			}
			return true
		})
	}
	return out, nil
}
