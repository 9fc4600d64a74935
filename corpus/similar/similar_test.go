package similar

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// find clusters texts that have ids.
func find(t testing.TB, s Scheme, texts map[string]string, order []string) Result {
	t.Helper()
	f := NewFinder(s)
	for _, id := range order {
		f.Add(id, texts[id])
	}
	got, err := f.Clusters(func(id string) (string, error) { return texts[id], nil })
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestClaimsInSeveralWordings(t *testing.T) {
	texts := map[string]string{
		"a1": "Says the toll of the Lakeford bridge doubled in 2022.",
		"a2": "The toll of the Lakeford bridge doubled in 2022",
		"a3": "“The toll of the Lakeford Bridge doubled in 2022.”",
		"b1": "The toll of the Lakeford bridge doubled in 2021.",
		"c1": "The toll of the Averil bridge doubled in 2022.",
		"d1": "The toll of the Lakeford bridge did not double in 2022.",
		"e1": "Video shows a flooded library in Brenwick after the storm.",
		"e2": "This video clip shows a flooded library in Brenwick after the storm.",
		"f1": "湖畔桥的通行费在去年翻了一番",
		"f2": "湖畔桥的通行费在去年翻了一番。",
		"g1": "",
		"g2": "!!!",
		"h1": "On wells",
		"h2": "On wells again",
	}
	got := find(t, Claims, texts, keys(texts))
	var members [][]string
	for _, c := range got.Clusters {
		members = append(members, c.Members)
		if c.ID != c.Members[0] || !slices.IsSorted(c.Members) || len(c.Links) < len(c.Members)-1 {
			t.Errorf("cluster %s of %v has %d links", c.ID, c.Members, len(c.Links))
		}
	}
	want := [][]string{{"a1", "a2", "a3"}, {"e1", "e2"}, {"f1", "f2"}}
	if d := cmp.Diff(want, members); d != "" {
		t.Errorf("clusters (-want +got):\n%s", d)
	}
}

func TestSameStatement(t *testing.T) {
	const claim = "Governor Mara Quill cut the school budget by 5 percent in Averil."
	tests := []struct {
		name, a, b string
		same       bool
	}{
		{"quotes, case and stops", claim, "“governor Mara Quill cut the School budget by 5% in Averil”", true},
		{"a teller", claim, "Says Governor Mara Quill cut the school budget by 5 percent in Averil.", true},
		{"a number as a word", claim, "Governor Mara Quill cut the school budget by five percent in Averil.", true},
		{"another ending", claim, "Governor Mara Quill cuts the schools budget by 5 percent in Averil.", true},
		{"reported otherwise", "Photo shows two wells in Holm.", "Image shows two wells in Holm.", true},
		{"grouped digits", "Holm has 12,500 wells on paper.", "Holm has 12500 wells on paper.", true},
		{"another number", claim, "Governor Mara Quill cut the school budget by 6 percent in Averil.", false},
		{"tenths", "Holm has 5.2 wells a head there.", "Holm has 52 wells a head there.", false},
		{"another scale", "Holm spent 3 million on wells.", "Holm spent 3 billion on wells.", false},
		{"one more number", claim, "Governor Mara Quill cut the school budget by 5 percent in Averil in 2021.", false},
		{"negated", claim, "Governor Mara Quill didn’t cut the school budget by 5 percent in Averil.", false},
		{"negated without the mark", claim, "Governor Mara Quill didnt cut the school budget by 5 percent in Averil.", false},
		{"another name", claim, "Governor Mara Quill cut the school budget by 5 percent in Holm.", false},
		{"a name that looks like it", "Iran signed the wells treaty again.", "Iraq signed the wells treaty again.", false},
		{"the opposite", "Rents rose in Holm for 3 years.", "Rents fell in Holm for 3 years.", false},
		{"names changed places", "Mara Quill beat Tom Ford in the vote on wells.", "Tom Ford beat Mara Quill in the vote on wells.", false},
		{"a subject", "On wells", "On wells again", false},
	}
	for _, tt := range tests {
		if got := SameStatement(tt.a, tt.b); got != tt.same {
			t.Errorf("%s: SameStatement = %v, want %v", tt.name, got, tt.same)
		}
		if SameStatement(tt.a, tt.b) != SameStatement(tt.b, tt.a) {
			t.Errorf("%s: the order of the wordings counts", tt.name)
		}
		if !SameStatement(tt.a, tt.a) || !SameStatement(tt.b, tt.b) {
			t.Errorf("%s: a wording does not agree with itself", tt.name)
		}
	}
}

func TestWords(t *testing.T) {
	same := [][2]string{
		{"Don’t stop", "dont STOP"}, {"U.S. law", "US law"}, {"1,000 wells", "1000 wells"}, {"Café", "Cafe\u0301"}, {"a\u200bb", "ab"}, {"x, y. Z!", "X Y Z"},
	}
	for _, p := range same {
		if !slices.Equal(appendWords(nil, p[0]), appendWords(nil, p[1])) {
			t.Errorf("%q and %q have other words", p[0], p[1])
		}
	}
	for text, n := range map[string]int{"": 0, " .,' ": 0, "one two": 2, "井戸を": 3, "5.2 km": 2, "wells'": 1} {
		if got := len(appendWords(nil, text)); got != n {
			t.Errorf("%q has %d words, want %d", text, got, n)
		}
	}
	if slices.Equal(appendWords(nil, "5.2"), appendWords(nil, "52")) {
		t.Error("5.2 is 52")
	}
}

// The result is one, in whatever order texts arrive, and every link holds.
func TestClustersTakeNoHeedOfTheOrder(t *testing.T) {
	for _, s := range []Scheme{Documents, Claims} {
		texts, _ := planted(rand.New(rand.NewPCG(1, 2)), 3000)
		ids := keys(texts)
		want := find(t, s, texts, ids)
		if len(want.Clusters) < 50 {
			t.Fatalf("%s: %d clusters", s.Name, len(want.Clusters))
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for range 3 {
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			if d := cmp.Diff(want, find(t, s, texts, ids)); d != "" {
				t.Fatalf("%s: another order gives other clusters:\n%s", s.Name, d)
			}
		}
	}
}

// Recall on planted pairs at the stated similarity is what the formula says, and nothing below it is linked.
func TestRecallAndFalseMerges(t *testing.T) {
	texts, pairs := planted(rand.New(rand.NewPCG(5, 6)), 10_000)
	got := find(t, Documents, texts, keys(texts))
	found, due := recall(got, texts, pairs)
	if due < 500 {
		t.Fatalf("%d planted pairs at or above %v", due, Documents.Jaccard)
	}
	if share := float64(found) / float64(due); share < 0.98 {
		t.Errorf("recall %.4f of %d pairs, want 0.98", share, due)
	}
	if n := falseMerges(got, texts, Documents.Jaccard); n != 0 {
		t.Errorf("%d links below %v", n, Documents.Jaccard)
	}
	for _, s := range []Scheme{Documents, Claims} {
		if s.Recall(s.Jaccard) < 0.98 || s.Bands*s.Rows > permutations {
			t.Errorf("%s: recall %.3f at %.2f", s.Name, s.Recall(s.Jaccard), s.Jaccard)
		}
	}
}

func TestMinHashEstimatesJaccard(t *testing.T) {
	f := NewFinder(Documents)
	for _, same := range []int{10, 50, 90} {
		var sum float64
		const rounds = 200
		rng := rand.New(rand.NewPCG(uint64(same), 1))
		for range rounds {
			var a, b []uint64
			for i := range 100 {
				x := rng.Uint64()
				a = append(a, x)
				if i >= same {
					x = rng.Uint64()
				}
				b = append(b, x)
			}
			x, y := f.signature(a), f.signature(b)
			for i := range x {
				if x[i] == y[i] {
					sum++
				}
			}
		}
		want := float64(same) / float64(200-same)
		if got := sum / rounds / permutations; math.Abs(got-want) > 0.01 {
			t.Errorf("%d of 100 alike: the estimate is %.3f, the similarity %.3f", same, got, want)
		}
	}
}

// Many copies of one text are linked without comparing all with all, and a crowd of unlike texts that
// meet is left and counted.
func TestCrowds(t *testing.T) {
	texts := map[string]string{}
	for i := range 2000 {
		texts[fmt.Sprintf("c%05d", i)] = "The very same notice about the water supply of the village, again and again."
	}
	got := find(t, Documents, texts, keys(texts))
	if len(got.Clusters) != 1 || len(got.Clusters[0].Members) != 2000 || got.Compared > 2500 || got.Uncompared != 0 {
		t.Errorf("%d clusters after %d comparisons, %d left", len(got.Clusters), got.Compared, got.Uncompared)
	}
	s := Documents
	s.Agree = func(string, string) bool { return false }
	if got := find(t, s, texts, keys(texts)); len(got.Clusters) != 0 || got.Uncompared == 0 || got.Compared > 2000*crowd {
		t.Errorf("unlike texts: %d clusters after %d comparisons, %d left", len(got.Clusters), got.Compared, got.Uncompared)
	}
}

// Documents of one origin: copies of a text, and what rests on one source alone; links name the match.
func TestOrigins(t *testing.T) {
	const report = "https://news.example/2023/wells-of-averil/"
	type doc struct {
		id, own, text string
		cites         []string
	}
	docs := []doc{
		{"a", "https://one.example/1", "The council of Averil counted seven wells in the village on Sunday, says its report.", nil},
		{"b", "https://two.example/2", "“The council of Averil counted seven wells in the village on Sunday”, says its report!", nil},
		{"c", "https://www.reddit.com/r/wells/comments/c1/", "Look at this", []string{report + "?utm_source=share"}},
		{"d", "https://www.reddit.com/r/wells/comments/d1/", "Somebody counted at last, and it was about time that they did so.", []string{"http://news.example/2023/wells-of-averil/amp/", "https://www.reddit.com/r/wells/comments/d1/"}},
		{"e", "https://three.example/e", "Two sources say so, and they disagree.", []string{report, "https://other.example/x"}},
		{"f", "https://four.example/f", "A home page is no source.", []string{"https://news.example/"}},
		{"g", "https://five.example/g", "Neither is the home page of the same site.", []string{"https://news.example/"}},
	}
	f := NewFinder(Documents)
	texts := map[string]string{}
	for _, d := range docs {
		f.AddCiting(d.id, d.text, SoleSource(d.own, d.cites...))
		texts[d.id] = d.text
	}
	got, err := f.Clusters(func(id string) (string, error) { return texts[id], nil })
	if err != nil {
		t.Fatal(err)
	}
	want := []Cluster{
		{ID: "a", Members: []string{"a", "b"}, Links: []Link{{A: "a", B: "b", Jaccard: 1}}},
		{ID: "c", Members: []string{"c", "d"}, Links: []Link{{A: "c", B: "d", Source: report}}},
	}
	if d := cmp.Diff(want, got.Clusters); d != "" {
		t.Errorf("origins (-want +got):\n%s", d)
	}
}

func TestClustersErrors(t *testing.T) {
	f := NewFinder(Documents)
	f.Add("x", "one two three four")
	f.Add("y", "one two three four")
	broken := errors.New("disk is gone")
	if _, err := f.Clusters(func(string) (string, error) { return "", broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), "read y") {
		t.Errorf("error %v", err)
	}
	f.Add("x", "five six seven")
	if _, err := f.Clusters(func(string) (string, error) { return "", nil }); err == nil || !strings.Contains(err.Error(), "x came twice") {
		t.Errorf("error %v", err)
	}
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// planted makes n short documents of invented words, a tenth of them edited copies of others, and tells
// which of which.
func planted(rng *rand.Rand, n int) (texts map[string]string, pairs [][2]string) {
	texts = map[string]string{}
	p, last := newPress(rng), ""
	for i := range n {
		id := fmt.Sprintf("d%07d", rng.IntN(10_000_000))
		switch _, taken := texts[id]; {
		case taken:
		case i%10 == 9:
			texts[id] = p.edited(texts[last], 1+rng.IntN(6))
			pairs = append(pairs, [2]string{last, id})
		default:
			texts[id], last = p.post(), id
		}
	}
	return texts, pairs
}

// recall counts the planted pairs that are similar enough, and of these the ones in one cluster.
func recall(got Result, texts map[string]string, pairs [][2]string) (found, due int) {
	cluster := map[string]string{}
	for _, c := range got.Clusters {
		for _, m := range c.Members {
			cluster[m] = c.ID
		}
	}
	for _, p := range pairs {
		if Documents.Similarity(texts[p[0]], texts[p[1]]) < Documents.Jaccard {
			continue
		}
		if due++; cluster[p[0]] != "" && cluster[p[0]] == cluster[p[1]] {
			found++
		}
	}
	return found, due
}

// falseMerges counts links whose similarity, told by sets of plain strings, is below least, and members
// that no link connects.
func falseMerges(got Result, texts map[string]string, least float64) (n int) {
	runs := func(text string) map[string]bool {
		out := map[string]bool{}
		text = stopInWord.ReplaceAllString(strings.ToLower(strings.NewReplacer("’", "", "'", "", "“", " ", "”", " ").Replace(text)), "$1$2")
		w := strings.FieldsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9')
		})
		for i := 0; i+3 <= len(w); i++ {
			out[strings.Join(w[i:i+3], " ")] = true
		}
		return out
	}
	for _, c := range got.Clusters {
		linked := map[string]bool{}
		for _, l := range c.Links {
			linked[l.A], linked[l.B] = true, true
			a, b := runs(texts[l.A]), runs(texts[l.B])
			both := 0
			for w := range a {
				if b[w] {
					both++
				}
			}
			if j := float64(both) / float64(len(a)+len(b)-both); j < least-1e-9 || math.Abs(j-l.Jaccard) > 1e-9 {
				n++
			}
		}
		if len(linked) != len(c.Members) {
			n++
		}
	}
	return n
}

// stopInWord is a full stop between letters, as in an abbreviation: no end of a word.
var stopInWord = regexp.MustCompile(`([a-z0-9])\.([a-z])`)

// A press writes short posts in invented words, a few of them in every sentence as in any language, and
// edits them as people do who pass them on.
type press struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newPress(rng *rand.Rand) *press {
	p := &press{rng: rng, zipf: rand.NewZipf(rng, 1.07, 8, 29_999), words: make([]string, 30_000)}
	for i := range p.words {
		w := make([]byte, 2+min(i/40, 8)/2+rng.IntN(5))
		for j := range w {
			w[j] = 'a' + byte(rng.IntN(26))
		}
		p.words[i] = string(w)
	}
	return p
}

func (p *press) word() string { return p.words[p.zipf.Uint64()] }

// post is a text of 25 to 60 words in sentences.
func (p *press) post() string {
	var b strings.Builder
	for n := 25 + p.rng.IntN(36); n > 0; {
		k := min(n, 5+p.rng.IntN(12))
		n -= k
		for i := range k {
			w := p.word()
			if i == 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			b.WriteString(w)
			switch {
			case i == k-1:
				b.WriteString(". ")
			case p.rng.IntN(12) == 0:
				b.WriteString(", ")
			default:
				b.WriteByte(' ')
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// edited is a text after a number of edits: a word replaced, dropped, put in or mistyped, a lead in front,
// a source behind, a sentence cut off the end, other quotes, other case.
func (p *press) edited(text string, edits int) string {
	for range edits {
		w := strings.Fields(text)
		i := p.rng.IntN(len(w))
		switch p.rng.IntN(10) {
		case 0, 1:
			w[i] = p.word()
		case 2:
			w = slices.Delete(w, i, i+1)
		case 3:
			w = slices.Insert(w, i, p.word())
		case 4:
			if n := len(w[i]); n > 3 {
				w[i] = w[i][:1] + w[i][2:3] + w[i][1:2] + w[i][3:]
			}
		case 5:
			w = append([]string{"BREAKING:"}, w...)
		case 6:
			w = append(w, "(via", p.word()+")")
		case 7:
			if cut := strings.LastIndex(strings.TrimSuffix(text, "."), ". "); cut > len(text)*3/4 {
				w = strings.Fields(text[:cut+1])
			}
		case 8:
			w[0], w[len(w)-1] = "“"+w[0], w[len(w)-1]+"”"
		default:
			w = strings.Fields(strings.ToUpper(text))
		}
		text = strings.Join(w, " ")
	}
	return text
}
