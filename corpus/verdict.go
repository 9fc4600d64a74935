package corpus

import (
	"fmt"
	"sort"
	"strings"
)

// Verdict is a point of the six-way scale (GPE, seed section on labels).
type Verdict string

// The six verdicts.
const (
	True        Verdict = "true"
	MostlyTrue  Verdict = "mostly_true"
	HalfTrue    Verdict = "half_true"
	MostlyFalse Verdict = "mostly_false"
	False       Verdict = "false"
	Uncertain   Verdict = "uncertain"
)

// Verdicts lists the scale from true to false, uncertain last.
var Verdicts = []Verdict{True, MostlyTrue, HalfTrue, MostlyFalse, False, Uncertain}

// Ordinal returns the index on the scale, false 0 to true 4; uncertain and unknown words have none.
func (v Verdict) Ordinal() (int, bool) {
	switch v {
	case False:
		return 0, true
	case MostlyFalse:
		return 1, true
	case HalfTrue:
		return 2, true
	case MostlyTrue:
		return 3, true
	case True:
		return 4, true
	}
	return 0, false
}

// Slug writes a rating as sources print it ("Pants on Fire!", "Half-True", "[False].") as a slug.
func Slug(s string) string {
	s = strings.ToLower(strings.Trim(Fold(s), " []()\"'.!*"))
	s = strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return '_'
		}
		return r
	}, s)
	return s
}

var verdictAliases = map[string]Verdict{
	"pants_on_fire": False, "pants_fire": False, "fire": False,
	"barely_true": MostlyFalse, "half_false": HalfTrue, "mixture": HalfTrue,
	"unverified": Uncertain, "nei": Uncertain, "not_enough_evidence": Uncertain, "unproven": Uncertain,
}

// ParseVerdict normalises a label that a model or a table wrote (methods 3.0, label normaliser).
func ParseVerdict(s string) (Verdict, bool) {
	slug := Slug(s)
	for _, v := range Verdicts {
		if string(v) == slug {
			return v, true
		}
	}
	v, ok := verdictAliases[slug]
	return v, ok
}

// A RatingMap turns the ratings of one source into the six-way scale. A rating that it does not
// name is queued for a person, never guessed.
type RatingMap struct {
	Source  string
	Version int
	Ratings map[string]Rating // by Slug of what the source prints
	// Queued are words that the source is known to print and that have no sure place on the scale, by
	// Slug, each with the page that shows it. They wait for a person like any other that is not named.
	Queued map[string]string
}

// A Rating is one entry of a RatingMap: the source's canonical slug, and the verdict or the reason
// why it is none.
type Rating struct {
	Slug     string
	Verdict  Verdict
	Exclude  string // exclusion reason for a rating that is no truth verdict
	Evidence string // a page that prints the rating, or one of the source that explains it
}

// Map looks a printed rating up.
func (m RatingMap) Map(raw string) (Rating, bool) {
	r, ok := m.Ratings[Slug(raw)]
	return r, ok
}

// Knows reports whether a source is known to print a rating, mapped or queued.
func (m RatingMap) Knows(raw string) bool {
	_, mapped := m.Ratings[Slug(raw)]
	_, queued := m.Queued[Slug(raw)]
	return mapped || queued
}

// politifactScale shows every word of the truth-o-meter, and some of the flip-o-meter.
const politifactScale = "https://www.politifact.com/factchecks/list/"

// PolitiFactRatings is the truth-o-meter, with the machine words and the readers' labels, and the
// flip-o-meter, which rates consistency, not truth.
var PolitiFactRatings = RatingMap{Source: "politifact", Version: 1, Ratings: map[string]Rating{
	"true": {Slug: "true", Verdict: True, Evidence: politifactScale}, "mostly_true": {Slug: "mostly_true", Verdict: MostlyTrue, Evidence: politifactScale},
	"half_true": {Slug: "half_true", Verdict: HalfTrue, Evidence: politifactScale}, "barely_true": {Slug: "mostly_false", Verdict: MostlyFalse, Evidence: politifactScale},
	"mostly_false": {Slug: "mostly_false", Verdict: MostlyFalse, Evidence: politifactScale}, "false": {Slug: "false", Verdict: False, Evidence: politifactScale},
	"pants_fire": {Slug: "pants_on_fire", Verdict: False, Evidence: politifactScale}, "pants_on_fire": {Slug: "pants_on_fire", Verdict: False, Evidence: politifactScale},
	"fire":      {Slug: "pants_on_fire", Verdict: False, Evidence: politifactScale},
	"full_flop": {Slug: "full_flop", Exclude: "flip_o_meter", Evidence: "https://www.politifact.com/factchecks/2013/jan/09/kasim-reed/atlanta-mayor-shifts-same-sex-marriage/"}, "half_flip": {Slug: "half_flip", Exclude: "flip_o_meter", Evidence: "https://www.politifact.com/factchecks/2012/aug/21/john-barge/ga-superintendents-statement-draws-flip-flop-charg/"},
	"no_flip": {Slug: "no_flip", Exclude: "flip_o_meter", Evidence: politifactScale},
}}

// AVeriTeCRatings are the four labels of AVeriTeC. Conflicting evidence, or evidence that was picked to
// mislead, is neither true nor false.
var AVeriTeCRatings = RatingMap{Source: "averitec", Version: 1, Ratings: map[string]Rating{
	"supported": {Slug: "true", Verdict: True}, "refuted": {Slug: "false", Verdict: False},
	"not_enough_evidence":                {Slug: "not_enough_evidence", Verdict: Uncertain},
	"conflicting_evidence/cherrypicking": {Slug: "conflicting_evidence", Verdict: HalfTrue},
}}

// ClaimReviewRatings are the words of ClaimReview markup that say the same wherever they stand, in the
// languages that fact-checkers write most. Misleading, altered, missing context and their like say what
// is wrong, not how true a claim is: they wait for a person.
var ClaimReviewRatings = RatingMap{Source: "claimreview", Version: 1, Ratings: map[string]Rating{
	"true": {Slug: "true", Verdict: True}, "correct": {Slug: "true", Verdict: True}, "accurate": {Slug: "true", Verdict: True},
	"vrai": {Slug: "true", Verdict: True}, "verdadero": {Slug: "true", Verdict: True}, "verdadeiro": {Slug: "true", Verdict: True},
	"wahr": {Slug: "true", Verdict: True}, "richtig": {Slug: "true", Verdict: True}, "vero": {Slug: "true", Verdict: True},
	"mostly_true": {Slug: "mostly_true", Verdict: MostlyTrue},
	"half_true":   {Slug: "half_true", Verdict: HalfTrue}, "mixture": {Slug: "mixture", Verdict: HalfTrue}, "mixed": {Slug: "mixture", Verdict: HalfTrue},
	"mostly_false": {Slug: "mostly_false", Verdict: MostlyFalse},
	"false":        {Slug: "false", Verdict: False}, "not_true": {Slug: "false", Verdict: False}, "untrue": {Slug: "false", Verdict: False},
	"incorrect": {Slug: "false", Verdict: False}, "faux": {Slug: "false", Verdict: False}, "falso": {Slug: "false", Verdict: False},
	"falsa": {Slug: "false", Verdict: False}, "falsch": {Slug: "false", Verdict: False},
	"pants_on_fire": {Slug: "pants_on_fire", Verdict: False},
	"unproven":      {Slug: "unproven", Verdict: Uncertain}, "unverified": {Slug: "unproven", Verdict: Uncertain},
}}

// ClaimsKGRatings are ClaimsKG's own four ratings and the words of the sites that it keeps beside them.
var ClaimsKGRatings = RatingMap{Source: "claimskg", Version: 1, Ratings: map[string]Rating{
	"true": {Slug: "true", Verdict: True}, "mostly_true": {Slug: "mostly_true", Verdict: MostlyTrue},
	"mixture": {Slug: "mixture", Verdict: HalfTrue}, "mixed": {Slug: "mixture", Verdict: HalfTrue}, "half_true": {Slug: "half_true", Verdict: HalfTrue},
	"mostly_false": {Slug: "mostly_false", Verdict: MostlyFalse}, "false": {Slug: "false", Verdict: False}, "not_true": {Slug: "false", Verdict: False},
	"pants_on_fire": {Slug: "pants_on_fire", Verdict: False}, "unproven": {Slug: "unproven", Verdict: Uncertain}, "unknown": {Slug: "unproven", Verdict: Uncertain},
	"other": {Slug: "other", Exclude: "no_verdict"}, // what no rule of ClaimsKG knew
}}

// FakeNewsNetRatings are those of news items, by the list that an item is in.
var FakeNewsNetRatings = RatingMap{Source: "fakenewsnet", Version: 1, Ratings: map[string]Rating{
	"fake": {Slug: "false", Verdict: False}, "real": {Slug: "true", Verdict: True},
}}

// FEVERRatings are the three labels of FEVER.
var FEVERRatings = RatingMap{Source: "fever", Version: 1, Ratings: map[string]Rating{
	"supports": {Slug: "true", Verdict: True}, "refutes": {Slug: "false", Verdict: False},
	"not_enough_info": {Slug: "not_enough_info", Verdict: Uncertain},
}}

// SixWayRatings are the words of the six-way scale itself.
var SixWayRatings = RatingMap{Source: "six_way", Version: 1, Ratings: map[string]Rating{
	"true": {Slug: "true", Verdict: True}, "mostly_true": {Slug: "mostly_true", Verdict: MostlyTrue}, "half_true": {Slug: "half_true", Verdict: HalfTrue},
	"mostly_false": {Slug: "mostly_false", Verdict: MostlyFalse}, "false": {Slug: "false", Verdict: False}, "uncertain": {Slug: "uncertain", Verdict: Uncertain},
}}

// SnopesRatings are the ratings of Snopes that are degrees of truth. Miscaptioned, outdated, legend,
// satire and attributions are not, and wait for a person.
var SnopesRatings = RatingMap{Source: "snopes", Version: 2,
	Ratings: map[string]Rating{
		"true":         {Slug: "true", Verdict: True, Evidence: "https://www.snopes.com/fact-check/hockey-pucks-shooting-defense/"},
		"mostly_true":  {Slug: "mostly_true", Verdict: MostlyTrue, Evidence: "https://www.snopes.com/fact-check/trump-wampanoag-land/"},
		"mixture":      {Slug: "mixture", Verdict: HalfTrue, Evidence: "https://www.snopes.com/fact-check/matthew-whitaker-judges/"},
		"mostly_false": {Slug: "mostly_false", Verdict: MostlyFalse, Evidence: "https://www.snopes.com/fact-check/elizabethtown-college-white-privilege/"},
		"false":        {Slug: "false", Verdict: False, Evidence: "https://www.snopes.com/fact-check/christmas-story-marathon-tbs/"},
		"unproven":     {Slug: "unproven", Verdict: Uncertain, Evidence: "https://www.snopes.com/fact-check/marie-yovanovitch-net-worth/"},
	},
	Queued: map[string]string{
		"correct_attribution":  "https://www.snopes.com/fact-check/wallace-american-fascism/",
		"misattributed":        "https://www.snopes.com/fact-check/winston-churchill-on-muslims-and-minority-rights/",
		"miscaptioned":         "https://www.snopes.com/fact-check/walmart-looting-video/",
		"outdated":             "https://www.snopes.com/fact-check/survivors-384th-af-squadron/",
		"legend":               "https://www.snopes.com/fact-check/indianapolis-area-code/",
		"scam":                 "https://www.snopes.com/fact-check-ratings/",
		"fake":                 "https://www.snopes.com/fact-check-ratings/",
		"recall":               "https://www.snopes.com/fact-check-ratings/",
		"labeled_satire":       "https://www.snopes.com/fact-check-ratings/",
		"originated_as_satire": "https://www.snopes.com/fact-check-ratings/",
		"research_in_progress": "https://www.snopes.com/fact-check-ratings/",
		"lost_legend":          "https://www.snopes.com/fact-check-ratings/",
	},
}

// RatingMaps lists every map by source, for the release and for assay list.
var RatingMaps = []RatingMap{
	AVeriTeCRatings, ClaimReviewRatings, ClaimsKGRatings, FakeNewsNetRatings, FEVERRatings, PolitiFactRatings, SixWayRatings, SnopesRatings,
}

// A Projection turns ratings or verdicts into a coarser scale (methods 3.0, projections).
type Projection struct {
	Name    string
	Version int
	Doc     string
	Warning string            // printed with every release made with it
	Rating  bool              // reads Claim.Rating; otherwise Claim.Verdict6
	Values  map[string]string // what is not named is dropped
}

// Projections lists the named projections.
var Projections = []Projection{
	{Name: "raguard_paper_text", Version: 1, Rating: true,
		Doc:    "binary, half true dropped, as the RAGuard paper's text has it",
		Values: map[string]string{"true": "true", "mostly_true": "true", "mostly_false": "false", "false": "false", "pants_on_fire": "false"},
	},
	{Name: "raguard_release", Version: 1, Rating: true,
		Doc:     "binary, half true counted as true, as the published RAGuard data has it",
		Warning: "half_true counts as true, as in the published data and against the paper's text; the six-way verdict is kept beside it",
		Values:  map[string]string{"true": "true", "mostly_true": "true", "half_true": "true", "mostly_false": "false", "false": "false", "pants_on_fire": "false"},
	},
	{Name: "three_way", Version: 1,
		Doc:    "true, false, and uncertain for half true and uncertain",
		Values: map[string]string{"true": "true", "mostly_true": "true", "false": "false", "mostly_false": "false", "half_true": "uncertain", "uncertain": "uncertain"},
	},
}

// ProjectionByName finds a projection; the error names the known ones.
func ProjectionByName(name string) (Projection, error) {
	var known []string
	for _, p := range Projections {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	sort.Strings(known)
	return Projection{}, fmt.Errorf("projection %q is unknown; known are %s", name, strings.Join(known, ", "))
}

// Apply projects a claim; ok is false where the projection drops it or its rating is unmapped.
func (p Projection) Apply(c Claim) (value string, ok bool) {
	key := string(c.Verdict6)
	if p.Rating {
		key = c.Rating
	}
	value, ok = p.Values[key]
	return value, ok
}
