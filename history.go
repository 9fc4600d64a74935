package assay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

// What a site said before is read from the stored versions of its pages, like everything else: the same
// responses give the same history, whatever was run when.

// reading is what one version of a page says.
type reading struct {
	claims []corpus.Claim
	seen   time.Time // when that version was first retrieved
}

// remembered gives claims of a page what its earlier versions said of them.
func (s stages) remembered(ctx context.Context, site scrapers.Site, page *fetch.Page, claims []corpus.Claim) ([]corpus.Claim, error) {
	pages, err := s.w.fetch.Versions(ctx, page)
	if err != nil || len(pages) == 0 {
		return claims, err
	}
	return chronicle(append(readings(site, pages), reading{claims, page.Retrieved})), nil
}

// readings parses versions of a page. One that cannot be read says nothing: nobody released it either.
func readings(site scrapers.Site, pages []*fetch.Page) []reading {
	var out []reading
	for _, p := range pages {
		if claims, err := site.Parse(p); err == nil {
			out = append(out, reading{claims, p.Retrieved})
		}
	}
	return out
}

// chronicle returns the claims of the last reading with their earlier rulings, and with the claim that
// each of them replaced: the one that stood at its position when it first appeared, and stands no longer.
func chronicle(list []reading) []corpus.Claim {
	type past struct {
		supersedes string
		rulings    []corpus.Ruling
	}
	known := map[string]*past{}
	var before []corpus.Claim
	for _, r := range list {
		still := map[string]bool{}
		for _, c := range r.claims {
			still[c.ID] = true
		}
		for _, c := range r.claims {
			h := known[c.ID]
			if h == nil {
				h = &past{}
				known[c.ID] = h
				for _, old := range before {
					if old.Position == c.Position && !still[old.ID] {
						h.supersedes = old.ID
					}
				}
			}
			now := corpus.Ruling{RatingRaw: c.RatingRaw, Rating: c.Rating, Verdict6: c.Verdict6, Seen: r.seen.UTC().Format(time.RFC3339)}
			if n := len(h.rulings); n == 0 || !sameRuling(h.rulings[n-1], now) {
				h.rulings = append(h.rulings, now)
			}
		}
		before = r.claims
	}
	out := make([]corpus.Claim, len(before))
	for i, c := range before {
		h := known[c.ID]
		c.Supersedes, c.Earlier = cmp.Or(c.Supersedes, h.supersedes), h.rulings[:len(h.rulings)-1]
		if len(c.Earlier) == 0 {
			c.Earlier = nil
		}
		out[i] = c
	}
	return out
}

// sameRuling compares verdicts, and what was printed only where no map names it: "Pants on Fire!" with
// and without its mark is one verdict.
func sameRuling(a, b corpus.Ruling) bool {
	if a.Rating == "" && b.Rating == "" {
		return corpus.Slug(a.RatingRaw) == corpus.Slug(b.RatingRaw)
	}
	return a.Rating == b.Rating && a.Verdict6 == b.Verdict6
}

// A formerClaim is a claim that its page tells no longer.
type formerClaim struct {
	claim corpus.Claim
	item  pipeline.ItemInfo // of its page
	note  string
}

// former finds a claim in the earlier versions of a page.
func (w *Workspace) former(ctx context.Context, e *pipeline.Engine, id string) (found formerClaim, ok bool, err error) {
	for info, err := range e.Items(KindParse) {
		if err != nil {
			return found, false, err
		}
		if err := ctx.Err(); err != nil {
			return found, false, err
		}
		if !strings.Contains(info.Key, "://") {
			continue // a row has no versions
		}
		_, name, _ := strings.Cut(info.Stage, "/")
		site, err := scrapers.SiteNamed(name)
		if err != nil {
			continue // an item of a site that is no longer built in
		}
		if changed, err := w.fetch.Changed(ctx, info.Key); err != nil || !changed {
			if err != nil {
				return found, false, err
			}
			continue
		}
		pages, err := w.fetch.Past(info.Key)
		if err != nil {
			return found, false, err
		}
		list := readings(site, pages)
		for i, r := range slices.Backward(list) {
			for _, c := range chronicle(list[:i+1]) {
				if c.ID != id {
					continue
				}
				found = formerClaim{claim: c, item: info, note: fmt.Sprintf("its page, last seen to say this in the version of %s, says it no longer", r.seen.UTC().Format(time.RFC3339))}
				s, err := w.fetch.Standing(info.Key)
				if s.Answer == fetch.ClassGone {
					found.note = fmt.Sprintf("its page is gone since %s", s.GoneSince.UTC().Format(time.RFC3339))
				} else if i+1 < len(list) {
					for _, later := range chronicle(list[:i+2]) {
						if later.Supersedes == id {
							found.note = "replaced by " + later.ID
						}
					}
				}
				return found, true, err
			}
		}
	}
	return found, false, nil
}
