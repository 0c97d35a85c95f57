package sample

func rich(n *int) bool { return n != nil && *n > 1 }

func sample(a, b int, n *int) string {
	out := ""
	if a < b && n != nil &&
		*n >= a || b == 2 {
		out += "a"
	} else if a <= 1 {
		out += "b"
	}
	switch {
	case rich(n):
		out += "c"
	case a > 0 || n == nil && b != 1 || b > 2:
		out += "d"
	}
	both := func() bool { return (a > b) == (n != nil) }
	for i := 0; i < b; i++ {
		if !both() {
			out += "e"
		}
	}
	return out
}
