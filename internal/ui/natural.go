package ui

import (
	"cmp"
	"strings"
)

// natural compares two names by the numbers in them: node-2 comes before node-10. static/script.js
// uses the same order.
func natural(a, b string) int {
	restA, restB := a, b
	for restA != "" && restB != "" {
		digitsA, digitsB := digits(restA), digits(restB)
		if digitsA == "" || digitsB == "" {
			if restA[0] != restB[0] {
				return cmp.Compare(restA[0], restB[0])
			}
			restA, restB = restA[1:], restB[1:]
			continue
		}
		valueA, valueB := strings.TrimLeft(digitsA, "0"), strings.TrimLeft(digitsB, "0")
		if c := cmp.Or(cmp.Compare(len(valueA), len(valueB)), strings.Compare(valueA, valueB)); c != 0 {
			return c
		}
		restA, restB = restA[len(digitsA):], restB[len(digitsB):]
	}
	// The names are equal, one is a prefix of the other, or they differ only in leading zeros.
	return cmp.Or(cmp.Compare(len(restA), len(restB)), strings.Compare(a, b))
}

func digits(s string) string {
	end := 0
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	return s[:end]
}
