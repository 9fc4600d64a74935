package annotate

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
)

var marked = regexp.MustCompile(`\[([a-z]+):([^\]]+)\]`)

// markedTexts reads the invented texts with their mentions, which it takes out of their marks.
func markedTexts(t *testing.T) (texts []string, mentions [][]corpus.Mention) {
	t.Helper()
	data, err := os.ReadFile("testdata/mentions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		text, rest := "", line
		var in []corpus.Mention
		for at := marked.FindStringSubmatchIndex(rest); at != nil; at = marked.FindStringSubmatchIndex(rest) {
			text += rest[:at[0]]
			name, kind := rest[at[4]:at[5]], corpus.EntityType(rest[at[2]:at[3]])
			if !kind.Known() {
				t.Fatalf("%q is marked %q", name, kind)
			}
			start := utf8.RuneCountInString(text)
			in = append(in, corpus.Mention{Field: corpus.FieldText, Span: corpus.Span{Start: start, End: start + utf8.RuneCountInString(name)}, Text: name, Type: kind})
			text, rest = text+name, rest[at[1]:]
		}
		texts, mentions = append(texts, text+rest), append(mentions, in)
	}
	return texts, mentions
}

// The builtin model finds names by capitals and neighbours. On the invented set its precision and recall are
// printed; they have to stay above what they were. The set has the regular spelling of its inventors, so the
// figures say how the rules work and not how well they would do on the web.
func TestEntitiesOnTheMarkedSet(t *testing.T) {
	texts, mentions := markedTexts(t)
	m := client(t, nil, nil)
	var wanted, found, exact, placed int
	byType := map[corpus.EntityType][3]int{} // wanted, found, exact
	for i, text := range texts {
		x, err := Entities.Extract(t.Context(), m, ExtractSettings{Endpoint: "builtin", Model: "builtin"}, corpus.Document{ID: fmt.Sprint(i), Text: text})
		if err != nil {
			t.Fatal(err)
		}
		wanted += len(mentions[i])
		found += len(x.Mentions)
		for _, want := range mentions[i] {
			c := byType[want.Type]
			c[0]++
			byType[want.Type] = c
			if slices.Contains(x.Mentions, want) {
				continue
			}
			t.Logf("missed %s %q in %q", want.Type, want.Text, text)
		}
		for _, got := range x.Mentions {
			if covers, ok := got.Span.Of(text); !ok || covers != got.Text {
				t.Errorf("%q from %d to %d of %q is %q", got.Text, got.Span.Start, got.Span.End, text, covers)
			}
			c := byType[got.Type]
			c[1]++
			if slices.Contains(mentions[i], got) {
				exact++
				c[2]++
			} else {
				t.Logf("wrong %s %q in %q", got.Type, got.Text, text)
			}
			byType[got.Type] = c
			if slices.ContainsFunc(mentions[i], func(m corpus.Mention) bool { return m.Span == got.Span }) {
				placed++
			}
		}
	}
	if wanted < 200 {
		t.Errorf("the set has %d mentions, want 200", wanted)
	}
	precision, recall := float64(exact)/float64(found), float64(exact)/float64(wanted)
	t.Logf("%d mentions in %d texts; %d found: precision %.3f, recall %.3f; by place alone %.3f and %.3f",
		wanted, len(texts), found, precision, recall, float64(placed)/float64(found), float64(placed)/float64(wanted))
	for _, k := range corpus.EntityTypes {
		c := byType[k]
		t.Logf("%-12s %3d wanted, %3d found, %3d right", k, c[0], c[1], c[2])
	}
	if precision < 0.93 || recall < 0.93 {
		t.Errorf("precision %.3f and recall %.3f, want at least 0.93 both", precision, recall)
	}
}

// What a model names counts where the text has it, in whole words, the longer name first; the rest is refused
// with a reason. Places are characters, whatever their bytes.
func TestEntitiesArePlacedInTheText(t *testing.T) {
	d := corpus.Document{ID: "d_1", Title: "Averil’s fair", Text: "🎡🎡 Ida Quist opened the fair of Averil. The Averil Water Board paid; Averilians cheered. Ida  Quist’s “Act”, café Zoë, WHO: 東京の市長."}
	names := []namedEntity{
		{"Ida Quist", corpus.Person}, {"Averil", corpus.Location}, {"Averil Water Board", corpus.Organisation}, {"WHO", corpus.Organisation}, {"東京", corpus.Location},
		{"Cafe\u0301 Zoe\u0308", corpus.Organisation}, {"café Zoe\u0308", corpus.Organisation},
		{"Water Board", corpus.Organisation}, {"Lakeford", corpus.Location}, {"Ida Quist", corpus.Person}, {"Averil", corpus.Organisation},
		{"she", corpus.Person}, {"2.3", corpus.Product}, {strings.Repeat("long ", 20), corpus.Concept}, {"Averilian", corpus.Location},
	}
	m := always(encoded(t, entitiesReply{Mentions: names}))
	x, err := Entities.Extract(t.Context(), m, ExtractSettings{}, d)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range x.Mentions {
		field := d.Text
		if n.Field == corpus.FieldTitle {
			field = d.Title
		}
		if covers, ok := n.Span.Of(field); !ok || covers != n.Text {
			t.Errorf("%+v covers %q", n, covers)
		}
		got = append(got, fmt.Sprintf("%s %d-%d %s %s", n.Field, n.Span.Start, n.Span.End, n.Type, n.Text))
	}
	want := []string{
		"title 0-6 location Averil", "text 3-12 person Ida Quist", "text 32-38 location Averil", "text 44-62 organisation Averil Water Board",
		"text 109-117 organisation café Zoë", "text 119-122 organisation WHO", "text 124-126 location 東京",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mentions (-want +got):\n%s", diff)
	}
	reasons := map[string]string{}
	for _, r := range x.Refused {
		reasons[strings.TrimSpace(r.Text)[:min(6, len(r.Text))]+" "+r.Quote] = r.Reason
	}
	if diff := cmp.Diff(map[string]string{
		"Water  organisation": RefusedInside, "Lakefo location": RefusedSpan, "Ida Qu person": RefusedRepeated, "Averil organisation": RefusedOtherType,
		"she person": RefusedNoName, "2.3 product": RefusedNoName, "long l concept": RefusedLength, "Averil location": RefusedSpan, "Cafe\u0301 organisation": RefusedSpan,
	}, reasons); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	if len(x.Candidates) != 0 || x.Call != "call1" {
		t.Errorf("extraction %+v", x)
	}
}

// Contractions are two words in one place, between whatever quotation marks.
func TestEntitiesOfContractions(t *testing.T) {
	for _, text := range []string{"He said ‘Don’t go, don’t do it.’", "‘Don’t’ Ida Can’t", "Isn’t It Averil’s? WON’T Averil DON’T"} {
		for _, e := range readEntities(Passage{Text: text, Most: 50}) {
			if !strings.Contains(text, e.Text) {
				t.Errorf("%q is no part of %q", e.Text, text)
			}
		}
	}
}

// Events are of the claim's own words, and their times those that the words tell.
func TestEventsAreOfTheClaim(t *testing.T) {
	d := corpus.Document{ID: "c_1", Text: "Ida Quist closed the museum in March 2019 and sold the town hall two years ago, before the dry summer of 2020.", Authors: []string{"Tove Lind"}, PublishedAt: "2021-06-01"}
	whole := proposedEvent{Quote: "Ida Quist closed the museum in March 2019", Event: "Ida Quist closed the museum in March 2019.", When: "in March 2019", From: "2019-03-01", To: "2019-03-31"}
	with := func(change func(*proposedEvent)) proposedEvent { e := whole; change(&e); return e }
	for name, tt := range map[string]struct {
		p      proposedEvent
		from   string // "" and no time
		to     string
		source string
		events int
		reason string
	}{
		"as it stands":                  {whole, "2019-03-01", "2019-03-31", corpus.TimeFromText, 1, ""},
		"days of its own":               {with(func(e *proposedEvent) { e.From, e.To = "2018-01-01", "2018-01-02" }), "2019-03-01", "2019-03-31", corpus.TimeFromText, 1, ""},
		"counted from the claim's day":  {proposedEvent{"sold the town hall two years ago", "Ida Quist sold the town hall.", "two years ago", "", ""}, "2019-01-01", "2019-12-31", corpus.TimeFromClaim, 1, ""},
		"words that only a model reads": {with(func(e *proposedEvent) { e.When, e.From, e.To = "the dry summer of 2020", "2020-06-01", "2020-08-31" }), "2020-01-01", "2020-12-31", corpus.TimeFromText, 1, ""},
		"no time":                       {with(func(e *proposedEvent) { e.When, e.From, e.To = "", "", "" }), "", "", "", 1, ""},
		"days without words":            {with(func(e *proposedEvent) { e.When = "" }), "", "", "", 1, RefusedTime},
		"words that are not there":      {with(func(e *proposedEvent) { e.When = "in April 2019" }), "", "", "", 1, RefusedSpan},
		"a quote that is not there":     {with(func(e *proposedEvent) { e.Quote = "Quist burnt the museum" }), "", "", "", 0, RefusedSpan},
		"a number of its own":           {with(func(e *proposedEvent) { e.Event = "Ida Quist closed 14 museums." }), "", "", "", 0, RefusedAdded},
		"a name of its own":             {with(func(e *proposedEvent) { e.Event = "Then Rosa Halden closed the museum." }), "", "", "", 0, RefusedAdded},
		"a pronoun":                     {with(func(e *proposedEvent) { e.Event = "She closed the museum." }), "", "", "", 0, RefusedPronoun},
		"a question":                    {with(func(e *proposedEvent) { e.Event = "Did Ida Quist close the museum?" }), "", "", "", 0, RefusedQuestion},
		"one word":                      {with(func(e *proposedEvent) { e.Event = "Closing" }), "", "", "", 0, RefusedLength},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := Events.Extract(t.Context(), always(encoded(t, eventsReply{Events: []proposedEvent{tt.p}})), ExtractSettings{}, d)
			if err != nil || len(x.Events) != tt.events {
				t.Fatalf("%+v, %v", x, err)
			}
			reason := ""
			for _, r := range x.Refused {
				reason += r.Reason
			}
			if reason != tt.reason {
				t.Errorf("refused for %q, want %q", reason, tt.reason)
			}
			for _, e := range x.Events {
				if e.From != tt.from || e.To != tt.to || e.TimeFrom != tt.source || e.ID != "e1" {
					t.Errorf("event %+v, want %s to %s by %s", e, tt.from, tt.to, tt.source)
				}
				if covers, ok := e.Span.Of(d.Text); !ok || covers != tt.p.Quote {
					t.Errorf("its words are %q", covers)
				}
				if covers, _ := e.WhenSpan.Of(d.Text); covers != e.When {
					t.Errorf("its time is %q, %q", covers, e.When)
				}
			}
		})
	}
	x, err := Events.Extract(t.Context(), client(t, nil, nil), ExtractSettings{Endpoint: "builtin", Model: "builtin"}, d)
	if err != nil || len(x.Events) != 1 || x.Events[0].When != "March 2019" || x.Events[0].From != "2019-03-01" || len(x.Refused) != 0 {
		t.Errorf("the builtin model: %+v, %v", x, err)
	}
}

func TestReadWhen(t *testing.T) {
	for words, want := range map[string]string{
		"on 2021-02-03": "2021-02-03 2021-02-03 text", "3 February 2021": "2021-02-03 2021-02-03 text", "February 3rd, 2021": "2021-02-03 2021-02-03 text",
		"the 3rd of February 2021": "2021-02-03 2021-02-03 text", "in February 2020": "2020-02-01 2020-02-29 text", "in 1848": "1848-01-01 1848-12-31 text",
		"between 2015 and 2019": "2015-01-01 2019-12-31 text", "2015–2019": "2015-01-01 2019-12-31 text", "the 1990s": "1990-01-01 1999-12-31 text",
		"since 2016": "2016-01-01 2021-03-15 claim", "yesterday": "2021-03-14 2021-03-14 claim", "last month": "2021-02-01 2021-02-28 claim", "Last Year": "2020-01-01 2020-12-31 claim",
		"ten years ago": "2011-01-01 2011-12-31 claim", "this month": "2021-03-01 2021-03-31 claim",
		"30 February 2021": "", "from 2019 to 2015": "", "1 May 2 2021": "", "soon": "", "3000": "", "in 12345": "", "since 2030": "",
	} {
		from, to, source, ok := readWhen(words, "2021-03-15")
		if got := strings.TrimSpace(from + " " + to + " " + source); got != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", words, got, want)
		}
	}
	if _, _, _, ok := readWhen("last year", ""); ok {
		t.Error("last year is known without the day of the claim")
	}
}

// Malformed, refused, withheld and cut replies give no mention and no event, whichever extractor asked.
func TestExtractorFailures(t *testing.T) {
	for _, x := range Extractors {
		for name, tt := range map[string]struct{ content, finish, reason string }{
			"no object":           {"Ida Quist, Averil.", "stop", ReasonAnnotationFailed},
			"a field too many":    {`{"mentions":[],"events":[],"claims":[]}`, "stop", ReasonAnnotationFailed},
			"another type":        {`{"mentions":[{"text":"Ida Quist","type":"alien"}],"events":[{"quote":"x"}],"claims":[{"quote":"x"}]}`, "stop", ReasonAnnotationFailed},
			"a refusal":           {"I'm sorry, but I can't help with that.", "stop", ReasonRefused},
			"withheld":            {"", "content_filter", ReasonFiltered},
			"cut, thoughts alone": {"", "length", ReasonTruncated},
		} {
			s := serve(t, func(int, body) (string, string) { return tt.content, tt.finish })
			got, err := x.Extract(t.Context(), client(t, s, nil), ExtractSettings{Endpoint: "stub", Model: "stub-1"}, fairReport)
			var failed *ExtractionFailure
			if !errors.As(err, &failed) || failed.FailureReason() != tt.reason || failed.FailureClass() != "permanent" || len(failed.Calls) == 0 || got.Mentions != nil || got.Events != nil {
				t.Errorf("%s, %s: %+v, %v, want %s", x.Name, name, got, err, tt.reason)
			}
		}
	}
}
