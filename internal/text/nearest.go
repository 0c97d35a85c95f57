package text

import "strings"

// Nearest returns the most similar word to s among the known ones, or "" if all differ too much.
func Nearest(s string, known []string) string {
	if len(s) > 64 {
		return ""
	}
	best, least := "", len(s)/3+1
	for _, k := range known {
		if n := distance(strings.ToLower(s), strings.ToLower(k)); n <= least && (best == "" || n < least) {
			best, least = k, n
		}
	}
	return best
}

// distance is the Levenshtein distance, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
