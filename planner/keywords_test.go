package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"assay/llm"

	"github.com/google/go-cmp/cmp"
)

func TestVariants(t *testing.T) {
	const claim = "The harbor board raised tolls by 12 percent in 2019."
	for _, c := range []struct {
		name    string
		written []string
		claim   string
		n       int
		want    []string
	}{
		{"as they are", []string{"harbor board tolls", "toll increase 2019", "ferry prices 12%"}, claim, 3, []string{"harbor board tolls", "toll increase 2019", "ferry prices 12%"}},
		{"too many", []string{"a b", "c d", "e f"}, claim, 2, []string{"a b", "c d"}},
		{"fewer", []string{"harbor tolls"}, claim, 3, []string{"harbor tolls"}},
		{"quotes and marks", []string{`"harbor board" tolls,`, "“toll increase”?", "(ferry) prices; 12%."}, claim, 3, []string{"harbor board tolls", "toll increase", "ferry prices 12%"}},
		{"operators", []string{"site:reddit.com harbor tolls", "harbor AND tolls OR fees", "subreddit:news tolls -ferry"}, claim, 3, []string{"harbor tolls", "harbor tolls fees", "tolls ferry"}},
		{"words that judge", []string{"harbor tolls hoax", "fact-check harbor tolls", "is it true harbor tolls", "true or false tolls", "politifact"}, claim, 5, []string{"harbor tolls", "tolls"}},
		{"a name that judges", []string{"False Claims Act harbor", "hoax"}, "The False Claims Act covers harbors.", 3, []string{"False Claims Act harbor"}},
		{"seven keywords", []string{"one two three four five six seven"}, claim, 3, []string{"one two three four five six"}},
		{"a name is one keyword", []string{"Harbor Board of Upper Harborville tolls rose in spring"}, claim, 3, []string{"Harbor Board of Upper Harborville tolls rose in"}},
		{"an amount is one keyword", []string{"tolls cost $3.5 million paid by ferries"}, claim, 3, []string{"tolls cost $3.5 million paid by ferries"}},
		{"names without end", []string{strings.Repeat("Name ", 40)}, claim, 3, []string{strings.TrimSpace(strings.Repeat("Name ", 12))}},
		{"abbreviations and numbers", []string{"U.S. tolls COVID-19 $1,200 #4"}, claim, 3, []string{"U.S. tolls COVID-19 $1,200 #4"}},
		{"twice", []string{"Harbor tolls", "harbor  TOLLS", ""}, claim, 3, []string{"Harbor tolls"}},
		{"nothing left", []string{"hoax", "?!", `""`}, claim, 3, nil},
	} {
		if diff := cmp.Diff(c.want, Variants(c.written, c.claim, c.n)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTemplates(t *testing.T) {
	for _, tpl := range Templates() {
		if err := tpl.Check(); err != nil {
			t.Error(err)
		}
	}
	messages, err := Keywords.Render(KeywordVars{Claim: "Tolls rose by 12 percent.", Date: "2019-03-18", Variants: 3, MinWords: minWords, MaxWords: maxWords})
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 2 || !strings.Contains(messages[0].Content, "Write 3 search queries") || strings.Contains(messages[0].Content, "Tolls rose") ||
		!strings.Contains(messages[1].Content, "claim: Tolls rose by 12 percent.\ndate: 2019-03-18\n") || strings.Contains(messages[1].Content, "speaker") {
		t.Errorf("rendered %q", messages)
	}
}

func TestBuiltinKeywords(t *testing.T) {
	claims := []string{
		"The harbor board of Harborville raised tolls by 12 percent in 2019.",
		"Says Ada Quill voted against the ferry subsidy three times.",
		"It is what it is.", "", "2019", "港の料金は上がった",
	}
	for _, c := range claims {
		for n := 1; n <= MaxVariants; n++ {
			vars := KeywordVars{Claim: c, Variants: n, MinWords: minWords, MaxWords: maxWords}
			raw, err := builtinKeywords(vars)
			if err != nil {
				t.Fatal(err)
			}
			again, err := builtinKeywords(vars)
			if err != nil || string(again) != string(raw) {
				t.Errorf("%q: %s, then %s, %v", c, raw, again, err)
			}
			if got, status, err := Keywords.Parse(string(raw)); got == nil || status != llm.ParseStrict || err != nil {
				t.Errorf("%q: the answer %s is read as %s, %v", c, raw, status, err)
			}
			var reply keywordReply
			if err := json.Unmarshal(raw, &reply); err != nil || len(reply.Variants) > n {
				t.Errorf("%q: %s, %v", c, raw, err)
			}
			// Cleaning finds nothing to clean.
			if diff := cmp.Diff(reply.Variants, append([]string{}, Variants(reply.Variants, c, n)...)); diff != "" {
				t.Errorf("%q (-builtin +cleaned):\n%s", c, diff)
			}
		}
	}
	if _, err := builtinKeywords("a string"); err == nil {
		t.Error("variables of another template are accepted")
	}
}
