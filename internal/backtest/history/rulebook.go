package history

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// rulebook has the rules that are evaluated, as Prometheus parses them. It gives them to Prometheus' rule manager.
type rulebook struct {
	parser parser.Parser
	names  []string // of the files
	files  map[string]*rulefmt.RuleGroups
	unused []string // the alerts that matter to nobody, whose rules are left out
}

func newRulebook(files []RuleFile, matters func(fixed model.LabelSet) bool) (*rulebook, error) {
	b := &rulebook{parser: parser.NewParser(parser.Options{}), files: map[string]*rulefmt.RuleGroups{}}
	for _, file := range files {
		if _, twice := b.files[file.Name]; twice {
			return nil, fmt.Errorf("two rule files have the name %s", file.Name)
		}
		groups, errs := rulefmt.Parse(file.Text, false, model.UTF8Validation, b.parser, slog.New(slog.DiscardHandler))
		if err := errors.Join(errs...); err != nil {
			return nil, fmt.Errorf("reading the rules of %s: %w", file.Name, err)
		}
		b.names, b.files[file.Name] = append(b.names, file.Name), groups
	}
	if !slices.ContainsFunc(b.names, func(name string) bool { return len(b.files[name].Groups) > 0 }) {
		return nil, errors.New("the rules have no groups")
	}
	if matters == nil {
		return b, nil
	}
	return b, b.leaveOut(matters)
}

// leaveOut takes out each rule whose alerts matter to nobody, unless a rule that stays reads what it makes.
func (b *rulebook) leaveOut(matters func(fixed model.LabelSet) bool) error {
	type rule struct {
		*rulefmt.Rule
		stays bool
	}
	var all, toRead []*rule
	stay := func(r *rule) {
		if !r.stays {
			r.stays, toRead = true, append(toRead, r)
		}
	}
	byGroup := map[*rulefmt.RuleGroup][]*rule{}
	for _, file := range b.names {
		for i := range b.files[file].Groups {
			group := &b.files[file].Groups[i]
			for j := range group.Rules {
				r := &rule{Rule: &group.Rules[j]}
				all, byGroup[group] = append(all, r), append(byGroup[group], r)
				if r.Alert != "" && matters(fixedLabels(group, r.Rule)) {
					stay(r)
				}
			}
		}
	}
	for len(toRead) > 0 {
		r := toRead[0]
		toRead = toRead[1:]
		expr, err := b.parser.ParseExpr(r.Expr)
		if err != nil {
			return err
		}
		for _, other := range all {
			if queries(r.Rule) || reads(expr, other.Alert+other.Record) {
				stay(other)
			}
		}
	}
	for _, file := range b.names {
		groups := b.files[file]
		for i := range groups.Groups {
			group := &groups.Groups[i]
			var rules []rulefmt.Rule
			for _, r := range byGroup[group] {
				if r.stays {
					rules = append(rules, *r.Rule)
				} else {
					b.unused = append(b.unused, r.Alert+r.Record)
				}
			}
			group.Rules = rules
		}
		groups.Groups = slices.DeleteFunc(groups.Groups, func(g rulefmt.RuleGroup) bool { return len(g.Rules) == 0 })
	}
	slices.Sort(b.unused)
	b.unused = slices.Compact(b.unused)
	return nil
}

// fixedLabels are the labels that each alert of the rule has, whatever its expression gives.
func fixedLabels(group *rulefmt.RuleGroup, r *rulefmt.Rule) model.LabelSet {
	out := model.LabelSet{}
	for _, all := range []map[string]string{group.Labels, r.Labels} {
		for name, value := range all {
			if delete(out, model.LabelName(name)); !strings.Contains(value, "{{") {
				out[model.LabelName(name)] = model.LabelValue(value)
			}
		}
	}
	out[model.AlertNameLabel] = model.LabelValue(r.Alert)
	return out
}

// asksMore is a template in which Prometheus' functions query or now are called.
var asksMore = regexp.MustCompile(`\{\{[^}]*\b(query|now)\b`)

// queries says that a template of the rule may ask for more than its expression does.
func queries(r *rulefmt.Rule) bool {
	for _, all := range []map[string]string{r.Labels, r.Annotations} {
		for text := range maps.Values(all) {
			if asksMore.MatchString(text) {
				return true
			}
		}
	}
	return false
}

// asks says that a template of the group may ask for more than its rules' expressions do.
func (b *rulebook) asks(file, group string) bool {
	return slices.ContainsFunc(b.files[file].Groups, func(g rulefmt.RuleGroup) bool {
		return g.Name == group && slices.ContainsFunc(g.Rules, func(r rulefmt.Rule) bool { return queries(&r) })
	})
}

// skip names the rules that are left out.
func (b *rulebook) skip() []Skip {
	if len(b.unused) == 0 {
		return nil
	}
	return []Skip{{
		What: fmt.Sprintf("%d rules", len(b.unused)),
		Why:  "no policy takes their alerts, and no route, inhibition or blindWhen asks for them, so they were not evaluated: " + strings.Join(b.unused, ", "),
	}}
}

// Load gives Prometheus' rule manager the rules of a file.
func (b *rulebook) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return b.files[name], nil
}

// Parse parses an expression for Prometheus' rule manager.
func (b *rulebook) Parse(query string) (parser.Expr, error) { return b.parser.ParseExpr(query) }
