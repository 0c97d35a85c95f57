package words

import (
	"regexp"
	"strings"
)

// A pattern is a word or a phrase that Drydock does not use, with what to write in its place.
type pattern struct {
	name    string
	has     string // a text that each match contains; most texts lack it, which saves time
	matches *regexp.Regexp
	write   string
	fine    *regexp.Regexp // texts that match but are plain English
}

// patterns is the closed list of patterns.
var patterns = []pattern{
	{"of which", "wh", re(`\b(of|by|for|from|to|in|with|on|under|through|before|after|against) (which|whom|whose)\b`),
		"two sentences, or the noun", nil},
	{"whom", "whom", re(`\bwhom\b`), "the noun", nil},
	{"such as", "such as", re(`\bsuch as\b`), "like, for example", nil},
	{"shall", "shall", re(`\bshall\b`), "must", nil},
	{"anew", "anew", re(`\banew\b`), "again", nil},
	{"mend", "mend", re(`\bmend(s|ed|ing)?\b`), "repair, correct", nil},
	{"bears", "bear", re(`\bbears?\b`), "has, holds", nil},
	{"hears", "hear", re(`\b(hears?|heard|hearing)\b`), "receives, has an answer of", nil},
	{"tells", "tell", re(`\btells?\b`), "says, reports, shows, or the passive without a teller", nil},
	{"told", "told", re(`\btold\b`), "has received, was informed, or the active voice", nil},
	{"says ill of", " ill of", re(`\bsays? ill of\b`), "reports a fault of", nil},
	{"none is", "none", re(`\bnone (is|are|was|were)\b`), "no node is", nil},
	{"nobody", "body", re(`\b(some|no)body\b`), "a person; nothing; no one's name if it has one", nil},
	{"whoever", "ever", re(`\bwho(m)?ever\b`), "a person who, any program that", nil},
	{"is no X", " no ", re(`\b(is|are) no [a-z]`), "is not a", re(`\bthere (is|are) no |\b(is|are) no (longer|more)\b`)},
	{"is over", " over", re(`\b(is|are|was|were) over\b`), "has ended", nil},
	{"glass", "glass", re(`\bglass\b`), "break-glass", re(`\bbreak[- ]glass\b`)},
	{"is asked for", "asked for", re(`\b(is|are) asked for\b`), "is requested, is configured", nil},
	{"is waited for", "waited for", re(`\b(is|are|was|were) waited for\b`), "X waits for", nil},
	{"is said", " said", re(`\b(is|are|was) said\b`), "the active voice", nil},
	{"says neither", "says neither", re(`\bsays neither\b`), "does not say whether", nil},
	{"by now", "by now", re(`\bby now\b`), "now", nil},
	{"goes on", " on", re(`\b(goes|go|going|went) on\b`), "continues", nil},
	{"lets go", " go", re(`\blets? go\b`), "releases, closes", nil},
	{"is taken off", "taken ", re(`\btaken (off|back)\b`), "is removed", nil},
	{"nobody knows", " knows", re(`\b(nobody|no one) knows\b`), "is unknown", nil},
	{"what was seen", "what was seen", re(`\bwhat was seen\b`), "the observation", nil},
	{"the one there is", "the one there is", re(`\bthe one there is\b`), "the only one", nil},
	{"as ... says", " says", re(`\bas [\w. ]{1,30} says\b`), "see, according to", nil},
	{"its word", " word", re(`\b(its|whose|no|older|their) word\b`), "its answer", nil},
	{"10m0s", "0", re(`\b\d+[hm]0[ms](0s)?\b`), "10m, as the configuration writes it", nil},
	{"fires since", " since", re(`\bfires? since\b`), "has been firing since", nil},
	{"for want of", " want of", re(`\b(for|of) want of\b`), "because there is no", nil},
}

var re = regexp.MustCompile

// count returns how often the pattern matches the text. The text must be in lower case, with single
// spaces.
func (p pattern) count(says string) int {
	if !strings.Contains(says, p.has) {
		return 0
	}
	if p.fine != nil {
		says = p.fine.ReplaceAllString(says, "...")
	}
	return len(p.matches.FindAllStringIndex(says, -1))
}

// mostWords is the largest number of words in a sentence. The Kubernetes documentation style guide
// is the model.
const mostWords = 30

var sentenceEnds = regexp.MustCompile(`[.:;!?](\s|$)|\|| · `)

// names matches several pieces of code one after the other, or several links: tests, marks, keys or
// pages. They count as one word.
var names = regexp.MustCompile(`(\[[^][|]{1,40} )?\bx( ,| and| or)?( (\[[^][|]{1,40} )?x\b( ,| and| or)?)+`)

// longSentences returns how many sentences of the prose in a text are too long.
func longSentences(t text) (n int) {
	if t.kind != "comment" && t.kind != "page" {
		return 0
	}
	for _, s := range sentenceEnds.Split(names.ReplaceAllString(strings.Join(strings.Fields(t.says), " "), "x"), -1) {
		if len(strings.Fields(s)) > mostWords {
			n++
		}
	}
	return n
}
