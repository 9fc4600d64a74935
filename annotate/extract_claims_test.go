package annotate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"assay/corpus"
	"assay/llm"

	"github.com/google/go-cmp/cmp"
)

var fairReport = corpus.Document{
	ID: "d_fair", URL: "https://news.example/fair", Title: "Fair draws record crowd", PublishedAt: "2025-06-12T09:00:00Z",
	Text: "AVERIL (AP) — The spring fair in Averil drew 41,000 visitors in 2025, more than ever before.\n\n" +
		"“The fair cost the town 2.3 million dollars,” said Mayor Ilse Brandt on Tuesday.\n\n" +
		"He hopes that it will be as good next year. What will the next fair bring?\n\n" +
		"Tomas Holm opened the first bakery of Averil in 1987. He sold it to the Norrick Group for 90,000 crowns in 2011.\n\n" +
		"According to the Averil Water Board, the river rose by 40 centimeters on 3 June.\n\n" +
		"Sign up for our newsletter and get 3 letters a week from Averil.",
}

func TestReadClaims(t *testing.T) {
	got := readClaims(Passage{Title: fairReport.Title, Text: fairReport.Text, Date: "2025-06-12", Most: 10})
	type line struct{ Claim, Speaker, Date string }
	var lines []line
	for _, p := range got {
		if !strings.Contains(fairReport.Text, p.Quote) {
			t.Errorf("quote %q is not in the text", p.Quote)
		}
		lines = append(lines, line{p.Claim, p.Speaker, p.Date})
	}
	want := []line{
		{"The spring fair in Averil drew 41,000 visitors in 2025, more than ever before.", "", ""},
		{"The fair cost the town 2.3 million dollars.", "Mayor Ilse Brandt", "2025-06-10"},
		{"Tomas Holm opened the first bakery of Averil in 1987.", "", ""},
		{"Tomas Holm sold it to the Norrick Group for 90,000 crowns in 2011.", "", ""},
		{"The river rose by 40 centimeters on 3 June.", "Averil Water Board", ""},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	few := readClaims(Passage{Text: fairReport.Text, Most: 2})
	if len(few) != 2 {
		t.Errorf("%d proposals where 2 are asked for", len(few))
	}
}

// always answers with one reply, whatever it is asked.
func always(raw string) *asked {
	return &asked{answer: func(n int, _ llm.Request) (llm.Reply, error) { return reply(n, raw), nil }}
}

func TestExtractClaimsChecks(t *testing.T) {
	const good = "The fair cost the town 2.3 million dollars"
	tests := []struct {
		name   string
		p      proposal
		reason string
	}{
		{"as it stands", proposal{Quote: good, Claim: "The fair in Averil cost the town 2.3 million dollars.", Speaker: "Ilse Brandt", Date: "2025-06-10"}, ""},
		{"straight quotes and folded space", proposal{Quote: "\"The fair cost  the town\n2.3 million dollars,\"", Claim: "Averil spent 2.3 million dollars on the fair."}, ""},
		{"a quote from nowhere", proposal{Quote: "The fair cost nothing", Claim: "The fair in Averil cost 2.3 million dollars."}, RefusedSpan},
		{"no quote", proposal{Claim: "The fair in Averil cost 2.3 million dollars."}, RefusedSpan},
		{"too short", proposal{Quote: good, Claim: "It cost 2.3."}, RefusedLength},
		{"a question", proposal{Quote: good, Claim: "Did the fair cost Averil 2.3 million dollars?"}, RefusedQuestion},
		{"a pronoun only", proposal{Quote: good, Claim: "It cost the town 2.3 million dollars."}, RefusedPronoun},
		{"first person", proposal{Quote: good, Claim: "The fair of Averil cost us 2.3 million dollars."}, RefusedPronoun},
		{"nothing to check", proposal{Quote: good, Claim: "The fair of the town was a nice one."}, RefusedNothing},
		{"a number of its own", proposal{Quote: good, Claim: "The fair of Averil cost 2.4 million dollars."}, RefusedAdded},
		{"a name of its own", proposal{Quote: good, Claim: "The fair of Lakeford cost 2.3 million dollars."}, RefusedAdded},
		{"a speaker of its own", proposal{Quote: good, Claim: "The fair of Averil cost the town 2.3 million dollars.", Speaker: "Karl Unbekannt"}, RefusedSpeaker},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer, err := json.Marshal(claimsReply{Claims: []proposal{tt.p, tt.p}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Claims.Extract(t.Context(), always(string(answer)), ExtractSettings{}, fairReport)
			if err != nil {
				t.Fatal(err)
			}
			if tt.reason != "" {
				if len(got.Candidates) != 0 || len(got.Refused) != 2 || got.Refused[0].Reason != tt.reason {
					t.Fatalf("got %+v, want the reason %s", got, tt.reason)
				}
				return
			}
			if len(got.Candidates) != 1 || len(got.Refused) != 1 || got.Refused[0].Reason != RefusedRepeated {
				t.Fatalf("got %+v, want one candidate and its repetition refused", got)
			}
			c := got.Candidates[0]
			if said, ok := c.Span.Of(fairReport.Text); !ok || said != c.Quote || !strings.Contains(said, "2.3 million") {
				t.Errorf("span %v covers %q, the quote is %q", c.Span, said, c.Quote)
			}
			if c.ID != corpus.CandidateID("d_fair", c.Text, c.Speaker) || c.Call != "call1" || len(c.Signs) == 0 {
				t.Errorf("candidate %+v", c)
			}
		})
	}
}

// What is to come "this morning" can be checked only where somebody knows which morning that is.
func TestExtractClaimsWithoutADay(t *testing.T) {
	alert := corpus.Document{
		ID: "d_alert", Title: "Fire Weather Watch", Source: "weather.example",
		Text: "* WHEN...From 11 AM this morning to 11 AM Friday in Averil County.\n\n" +
			"Winds in Averil County will rise to 40 mph this afternoon and fall to 20 mph tonight.\n\n" +
			"The Averil gauge recorded a crest of 20.3 feet on Friday, June 6, 2025 and a low of 4 feet.\n\n" +
			"Gusts of 58 mph or stronger caused damage in Averil County and Norrick County.",
	}
	dated := alert
	dated.PublishedAt = "2025-06-12"
	claims := func(d corpus.Document) (out []string) {
		for _, p := range readClaims(Passage{Title: d.Title, Text: d.Text, Date: dayOf(d.PublishedAt), Most: 10}) {
			out = append(out, p.Claim)
		}
		return out
	}
	winds := "Winds in Averil County will rise to 40 mph this afternoon and fall to 20 mph tonight."
	lasting := []string{"The Averil gauge recorded a crest of 20.3 feet on Friday, June 6, 2025 and a low of 4 feet.", "Gusts of 58 mph or stronger caused damage in Averil County and Norrick County."}
	if diff := cmp.Diff(lasting, claims(alert)); diff != "" {
		t.Errorf("of no day (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{winds}, lasting...), claims(dated)); diff != "" {
		t.Errorf("of a day (-want +got):\n%s", diff)
	}
	answer, err := json.Marshal(claimsReply{Claims: []proposal{{Quote: winds, Claim: winds}, {Quote: lasting[0], Claim: lasting[0]}}})
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range map[*corpus.Document]int{&alert: 1, &dated: 2} {
		got, err := Claims.Extract(t.Context(), always(string(answer)), ExtractSettings{}, *d)
		if err != nil || len(got.Candidates) != want {
			t.Errorf("published %q: %+v, %v; want %d candidates", d.PublishedAt, got, err, want)
		}
		if want == 1 && (len(got.Refused) != 1 || got.Refused[0].Reason != RefusedUndated) {
			t.Errorf("refused %+v", got.Refused)
		}
	}
}

func TestExtractClaimsDatesAndBounds(t *testing.T) {
	answer, err := json.Marshal(claimsReply{Claims: []proposal{
		{Quote: "Tomas Holm opened the first bakery", Claim: "Tomas Holm opened a bakery in Averil in 1987.", Date: "2031-01-01"},
		{Quote: "The spring fair in Averil drew", Claim: "The spring fair in Averil drew 41,000 visitors in 2025.", Date: "2025-06-11"},
		{Quote: "the river rose", Claim: "The river of Averil rose by 40 centimeters.", Date: "soon"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := always(string(answer))
	got, err := Claims.Extract(t.Context(), m, ExtractSettings{PerDocument: 2, Model: "m"}, fairReport)
	if err != nil {
		t.Fatal(err)
	}
	var dates []string
	for _, c := range got.Candidates {
		dates = append(dates, c.Date)
	}
	if diff := cmp.Diff([]string{"2025-06-11", "2025-06-12"}, dates); diff != "" {
		t.Errorf("dates in the order of the text (-want +got):\n%s", diff)
	}
	if len(got.Refused) != 1 || got.Refused[0].Reason != RefusedSurplus {
		t.Errorf("refused %+v", got.Refused)
	}
	if q := m.requests[0]; q.Role != "extract" || q.Vars.(Passage).Most != 2 || q.Vars.(Passage).Date != "2025-06-12" {
		t.Errorf("asked %+v", q)
	}
}

func TestExtractClaimsNoAnswer(t *testing.T) {
	refuses := &asked{answer: func(int, llm.Request) (llm.Reply, error) { return ended(llm.OutcomeRefused, "no"), nil }}
	_, err := Claims.Extract(t.Context(), refuses, ExtractSettings{}, fairReport)
	var failure *ExtractionFailure
	if !errors.As(err, &failure) || failure.Reason != ReasonRefused || failure.Call != "call1" || failure.FailureClass() != "permanent" {
		t.Errorf("error %v, want the document's failure", err)
	}
}

func TestExtractorsAreSound(t *testing.T) {
	for i, e := range Extractors {
		if e.Name == "" || e.Version < 1 || e.Doc == "" || e.Extract == nil || i > 0 && Extractors[i-1].Name >= e.Name {
			t.Errorf("extractor %d: %+v", i, e)
		}
		if err := e.Prompt.Check(); err != nil {
			t.Error(err)
		}
	}
}
