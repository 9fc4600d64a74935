package assay

import (
	"fmt"
	"strings"
)

// Text is the report of a refresh for people.
func (r RefreshReport) Text(dryRun bool) string {
	var b strings.Builder
	if dryRun {
		r.plan(&b)
		b.WriteString(r.Build.Text(true))
		return b.String()
	}
	fmt.Fprintf(&b, "refresh %s", r.Run)
	if r.Resumed {
		b.WriteString(", gone on with")
	}
	b.WriteString("\n")
	for _, s := range r.Sources {
		s.text(&b)
	}
	if d := r.Documents; d.Asked+d.Unsent+len(d.Leaving)+len(d.Gone) > 0 {
		fmt.Fprintf(&b, "documents: %d asked for again%s\n", d.Asked, d.said())
		d.lists(&b)
	}
	q := r.Requests
	fmt.Fprintf(&b, "requests: %d (listings %d, stored pages %d, the rest %d); %d conditional, %d of them answered 304\n", q.Total, q.Listings, q.Again, q.Rest, q.Conditional, q.NotModified)
	for _, s := range r.Stops {
		if s.Accepted {
			fmt.Fprintf(&b, "accepted: %s\n", s)
		}
	}
	b.WriteString(r.Build.Text(false))
	return b.String()
}

// plan tells what would be asked.
func (r RefreshReport) plan(b *strings.Builder) {
	for _, s := range r.Sources {
		fmt.Fprintf(b, "%s: its listings from the newest item on, and %d stored pages%s\n", s.Source, total(s.Due), because(s.Due))
	}
	if n := total(r.Documents.Due); n > 0 {
		fmt.Fprintf(b, "documents: %d%s\n", n, because(r.Documents.Due))
	}
}

func because(due map[string]int) string {
	if total(due) == 0 {
		return ""
	}
	return " (due by " + tally(due) + ")"
}

func (s SourceReport) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %d new, %d verdicts changed, %d texts changed%s, %d unchanged; %d listings read, %d pages asked for\n",
		s.Source, s.New, len(s.Verdicts), len(s.Texts), s.said(), s.Unchanged, s.Listings, s.Asked)
	if s.Unread != "" {
		what := "a listing could not"
		if s.Listings == 0 {
			what = "no listing could"
		}
		fmt.Fprintf(b, "  %s be read again: %s\n", what, s.Unread)
	}
	some(b, "new", s.NewAt, s.New)
	var lines []string
	for _, c := range s.Verdicts {
		lines = append(lines, fmt.Sprintf("%s %s -> %s  %s", c.ID, c.Old, c.New, c.URL))
	}
	some(b, "verdict", lines, len(lines))
	lines = nil
	for _, c := range s.Texts {
		switch {
		case c.Was == "":
			lines = append(lines, fmt.Sprintf("%s is there now too: %q  %s", c.ID, c.New, c.URL))
		case c.ID == "":
			lines = append(lines, fmt.Sprintf("%s is there no more: %q  %s", c.Was, c.Old, c.URL))
		default:
			lines = append(lines, fmt.Sprintf("%s in place of %s: %q -> %q  %s", c.ID, c.Was, c.Old, c.New, c.URL))
		}
	}
	some(b, "text", lines, len(lines))
	some(b, "excluded now", s.Left, len(s.Left))
	some(b, "failed", s.Failed, len(s.Failed))
	s.lists(b)
}

// said counts what is gone and what is kept.
func (a AskedReport) said() string {
	var b strings.Builder
	if n := len(a.Gone); n > 0 {
		fmt.Fprintf(&b, ", %d gone", n)
	}
	if n := len(a.Leaving); n > 0 {
		fmt.Fprintf(&b, ", %d missing for less than a day", n)
	}
	if n := a.Unsent; n > 0 {
		fmt.Fprintf(&b, ", %d not asked for since their host was down or wants to be left alone", n)
	}
	if n := total(a.Kept); n > 0 {
		fmt.Fprintf(&b, ", %d kept although they could not be had (%s)", n, tally(a.Kept))
	}
	return b.String()
}

func (a AskedReport) lists(b *strings.Builder) {
	some(b, "gone", a.Gone, len(a.Gone))
	some(b, "missing", a.Leaving, len(a.Leaving))
	some(b, "kept", a.KeptAt, total(a.Kept))
}

// some writes the first lines of a list; the report in JSON has more.
func some(b *strings.Builder, what string, list []string, all int) {
	const most = 10
	for _, line := range list[:min(len(list), most)] {
		fmt.Fprintf(b, "  %s: %s\n", what, line)
	}
	if left := all - most; left > 0 && len(list) >= most {
		fmt.Fprintf(b, "  %s: and %d more\n", what, left)
	}
}
