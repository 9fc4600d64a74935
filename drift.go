package assay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/scrapers"
)

// A watch looks, beside the scrapers, at the pages and listings that a run reads, for signs that a site is
// not as it was when its scraper was written. It changes nothing that is read.
type watch struct {
	mu     sync.Mutex
	since  time.Time // when the run began
	canary scrapers.Canary
	looked map[string]map[string]bool // addresses by site
	met    map[string]int             // pages that could have been looked at, by site
	bad    []string                   // pages of which markup was given up
}

const (
	watched     = 200 // pages of a site in a run; more say nothing new, and looking costs as much as reading
	watchedAll  = 20  // of these, the first; then one of watchEvery, so that a long crawl is seen all along
	watchEvery  = 50
	driftPages  = 10 // so few say nothing about a site, see scrapers.Canary
	driftAlarms = 50 // of a site, in a report
)

func (v *watch) reset(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.since, v.canary, v.looked, v.met, v.bad = now, scrapers.Canary{}, map[string]map[string]bool{}, map[string]int{}, nil
}

// read looks at an item page that a stage reads, if it was retrieved in this run: one that was stored before
// tells how a site was.
func (v *watch) read(site scrapers.Site, p *fetch.Page) {
	v.mu.Lock()
	before := p.Retrieved.Before(v.since)
	v.mu.Unlock()
	if !before {
		v.page(site, p)
	}
}

// page looks at an item page that its host gave or confirmed, once in a run. What goes wrong in looking is no
// failure of the page.
func (v *watch) page(site scrapers.Site, p *fetch.Page) {
	if len(site.Layouts) == 0 && site.Read == nil {
		return
	}
	v.mu.Lock()
	if v.looked[site.Name] == nil {
		v.looked[site.Name] = map[string]bool{}
	}
	seen := v.looked[site.Name]
	v.met[site.Name]++
	enough := seen[p.URL] || len(seen) >= watched || len(seen) >= watchedAll && v.met[site.Name]%watchEvery != 0
	if !enough {
		seen[p.URL] = true
	}
	v.mu.Unlock()
	if enough {
		return
	}
	defer func() { _ = recover() }()
	o := scrapers.Observe(site, p)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.canary.Add(o)
}

// parsed notes a page whose markup was given up: its claims say so, or it gave none. Other than the signs of
// drift, these are counted for every page that a stage reads, stored ones too.
func (v *watch) parsed(p *fetch.Page, claims []corpus.Claim, err error) {
	bad := slices.ContainsFunc(claims, func(c corpus.Claim) bool { return corpus.HasFlag(c.Flags, corpus.FlagBadMarkup) })
	if err != nil {
		found, unread := scrapers.ClaimReviews(p)
		bad = unread == nil && len(found.Bad) > 0
	}
	if bad {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.bad = append(v.bad, p.Final)
	}
}

// badMarkup lists the pages of which markup was given up, by address.
func (v *watch) badMarkup() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := slices.Sorted(slices.Values(v.bad))
	return slices.Compact(append([]string{}, all...))
}

// listing looks at a listing as Discover read it.
func (v *watch) listing(ctx context.Context, site scrapers.Site, address string, l scrapers.Listing, err error) {
	if ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.canary.AddListing(site, address, l, err)
}

// sum is what was seen of a site.
func (v *watch) sum(site string) scrapers.SiteSum {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.canary.Sites[site]; s != nil {
		return *s
	}
	return scrapers.SiteSum{}
}

// alarms tells what was seen, of single pages and against the last release.
func (w *Workspace) alarms() ([]scrapers.Alarm, error) {
	before := scrapers.Canary{Sites: map[string]*scrapers.SiteSum{}}
	for entry, err := range w.tables.Drift.Scan("", "") {
		if err != nil {
			return nil, fmt.Errorf("read how sites looked: %w", err)
		}
		before.Sites[entry.Key] = &entry.Value
	}
	w.watch.mu.Lock()
	all := append(w.watch.canary.Alarms(), w.watch.canary.Since(before)...)
	w.watch.mu.Unlock()
	slices.SortStableFunc(all, func(a, b scrapers.Alarm) int { // what is severe first
		switch {
		case severe(a) == severe(b):
			return 0
		case severe(a):
			return -1
		}
		return 1
	})
	out, of := []scrapers.Alarm{}, map[string]int{}
	for _, a := range all {
		if of[a.Site]++; of[a.Site] <= driftAlarms {
			out = append(out, a)
		}
	}
	return out, nil
}

// severe reports whether an alarm is about a site and not about one page.
func severe(a scrapers.Alarm) bool { return a.URL == "" || a.Kind == scrapers.AlarmEmptied }

// What a Stop of drift is about.
const (
	stopDrift   = "drift"   // item pages
	stopListing = "listing" // a listing
)

// driftStops makes guard rails of severe alarms. What stopped an earlier run stays until the site was seen
// as it should be.
func (w *Workspace) driftStops(alarms []scrapers.Alarm) ([]Stop, error) {
	var out []Stop
	for _, sr := range w.Config.Recipe.Sites {
		source, sum := w.Config.Recipe.source(sr), w.watch.sum(sr.Name)
		for _, what := range []string{stopDrift, stopListing} {
			var said []string
			for _, a := range alarms {
				if a.Site == sr.Name && severe(a) && (a.Kind == scrapers.AlarmEmptied) == (what == stopListing) {
					said = append(said, a.String())
				}
			}
			if len(said) > 0 {
				out = append(out, Stop{Source: source, What: what, Detail: "it does not look as its scraper expects", Examples: said[:min(len(said), 3)]})
				continue
			}
			held, ok, err := w.tables.Holds.Get(kv.Key(source, what))
			if err != nil {
				return nil, err
			}
			if seen := what == stopDrift && sum.Pages >= driftPages || what == stopListing && sum.Items > 0; ok && !seen {
				out = append(out, held)
			}
		}
	}
	return out, nil
}

// noteDrift remembers how sites looked when they were released.
func (w *Workspace) noteDrift() error {
	for _, sr := range w.Config.Recipe.Sites {
		s := w.watch.sum(sr.Name)
		if s.Pages < driftPages {
			continue // a night's few pages are no measure
		}
		s.Alarms, s.Bad = nil, nil
		if err := w.tables.Drift.Put(sr.Name, s); err != nil {
			return err
		}
	}
	return nil
}
