// Package planner finds evidence for claims. In its RAGuard policy it lets a model write keyword
// variants of a claim, searches Reddit for each, fuses the result lists and keeps the best posts
// (methods 3.1, stage 2). It also knows the documents that a search needs to have: how dumps of Reddit
// and tables of labelled pairs are read, and which documents can be evidence at all.
//
// Reddit itself and the archive Arctic Shift are asked for posts by their ids and for threads (Reddit,
// ArcticShift); secrets stay in memory.
//
// It stores nothing: what a search found is a corpus.Trace, with every variant and rank, so that a
// person can follow it and a machine repeat it. It labels nothing and does not fetch what it found.
package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"assay/corpus"
)

// Version is that of Plan; a new one searches again for every claim.
const Version = 4

// PolicyRAGuard is the one-shot search of RAGuard: variants, search, fusion, cut.
const PolicyRAGuard = "raguard"

// Settings are the planner's part of a recipe. All of it shapes the data.
type Settings struct {
	Policy     string   `json:"policy"`
	Variants   int      `json:"variants"`             // queries to write; 0 searches the claim's own text and asks no model
	PerVariant int      `json:"per_variant,omitzero"` // results per query; 0 means 10
	Keep       int      `json:"keep,omitzero"`        // documents per claim; 0 means 10
	K          int      `json:"rrf_k,omitzero"`       // constant of reciprocal-rank fusion; 0 means 60
	Backend    string   `json:"backend,omitzero"`     // name in Backends; empty means local
	Domains    []string `json:"domains,omitzero"`     // registrable domains; empty means reddit.com
	Kinds      []string `json:"kinds,omitzero"`       // of documents; empty means posts
	Gate       Gate     `json:"gate,omitzero"`        // what a document needs to take one of the places
	Subreddits []string `json:"subreddits,omitzero"`  // for backends that search in them; empty means everywhere
	Language   string   `json:"language,omitzero"`    // of an encyclopedia; empty means en

	// Of the agentic search, nil for any other policy.
	Agent *Agent `json:"agent,omitempty"`

	// The model that writes the queries.
	Endpoint    string   `json:"endpoint,omitzero"`
	Model       string   `json:"model,omitzero"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Seed        *int     `json:"seed,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitzero"`
}

// Gate says what a found document needs to take one of the places. A published RAGuard claim has
// posts without a body among its ten; whoever leaves those out later should not spend places on them.
type Gate string

// The values of Gate.
const (
	GateOpen       Gate = ""             // everything that was found
	GateBody       Gate = "body"         // a usable body, see Usable
	GateBodyOrLink Gate = "body_or_link" // the same, or an address that will be followed
)

// lets reports whether a document passes, and if not, why.
func (g Gate) lets(d corpus.Document) (ok bool, reason string) {
	if g == GateOpen || g == GateBodyOrLink && d.Outbound != "" {
		return true, ""
	}
	return Usable(d)
}

func (s Settings) complete() (Settings, error) {
	if s.Policy == "" {
		s.Policy = PolicyRAGuard
	}
	switch s.Policy {
	case PolicyRAGuard:
	case PolicyAgent:
		agent := Agent{}
		if s.Agent != nil {
			agent = *s.Agent
		}
		agent.complete()
		for _, name := range agent.Tools {
			if _, err := ToolNamed(name); err != nil {
				return s, err
			}
		}
		s.Agent = &agent
		return s, nil
	default:
		return s, fmt.Errorf("policy %q is unknown; known are %s and %s", s.Policy, PolicyAgent, PolicyRAGuard)
	}
	if s.Variants < 0 || s.Variants > MaxVariants {
		return s, fmt.Errorf("%d variants: it must be 0 to %d", s.Variants, MaxVariants)
	}
	for _, n := range []struct {
		value *int
		usual int
	}{{&s.PerVariant, 10}, {&s.Keep, 10}, {&s.K, 60}} {
		if *n.value < 0 {
			return s, errors.New("per_variant, keep and rrf_k cannot be negative")
		}
		if *n.value == 0 {
			*n.value = n.usual
		}
	}
	if s.Backend == "" {
		s.Backend = local.Name
	}
	if len(s.Domains) == 0 {
		s.Domains = []string{"reddit.com"}
	}
	if len(s.Kinds) == 0 {
		s.Kinds = []string{corpus.KindRedditPost}
	}
	return s, nil
}

// Reasons why a search result is not kept.
const (
	DropUserPage      = "user_page"
	DropSubredditPage = "subreddit_page"
	DropWikiPage      = "wiki_page"
	DropNoPost        = "no_post"        // on the right domain, but no post
	DropElsewhere     = "other_domain"   // the engine did not keep to the domains
	DropBelowCut      = "below_cut"      // after the last one kept
	DropBadAddress    = "unreadable_url" // the engine's line has no address
	DropUserInfo      = "user_info"      // the address carries a user name or password, which is masked

	dropUnusable = "unusable: " // followed by the reason of Usable
)

// Plan searches for a claim's evidence. What the model or the index cannot give is an error, and
// nothing takes its place.
func Plan(ctx context.Context, env Env, s Settings, c corpus.Claim) (corpus.Trace, error) {
	s, err := s.complete()
	if err != nil {
		return corpus.Trace{}, fmt.Errorf("plan %s: %w", c.ID, err)
	}
	if s.Policy == PolicyAgent {
		return explore(ctx, env, s, c)
	}
	engine, err := BackendNamed(s.Backend)
	if err != nil {
		return corpus.Trace{}, fmt.Errorf("plan %s: %w", c.ID, err)
	}
	trace := corpus.Trace{ClaimID: c.ID, Policy: s.Policy, Candidates: []corpus.Candidate{}}
	model, st := env.Model, &state{}
	if model != nil {
		model = metered{model, st}
	}
	if trace.Queries, trace.Call, err = queries(ctx, model, s, c); err != nil {
		return corpus.Trace{}, err
	}
	if n := len(st.paid); n > 1 {
		trace.Calls = st.paid[:n-1] // what was asked before Call, and could not be read
	}
	f := fusion{k: s.K, byID: map[string]int{}}
	for variant, text := range trace.Queries {
		results, err := engine.Find(ctx, env, Query{Text: text, Domains: s.Domains, Kinds: s.Kinds, Subreddits: s.Subreddits, Language: s.Language, K: s.PerVariant})
		if err != nil {
			return corpus.Trace{}, fmt.Errorf("plan %s: query %q: %w", c.ID, text, err)
		}
		for i, r := range results[:min(len(results), s.PerVariant)] {
			id, url, reason := canonical(r, s.Domains)
			f.add(id, url, cmp.Or(r.Drop, reason), corpus.Hit{Variant: variant, Rank: i + 1, Source: engine.Name, Via: r.Via})
		}
	}
	if s.Gate != GateOpen && env.Document != nil {
		if err := f.gate(s.Gate, env.Document); err != nil {
			return corpus.Trace{}, fmt.Errorf("plan %s: %w", c.ID, err)
		}
	}
	trace.Candidates = f.ranked(s.Keep)
	return trace, nil
}

// fusion collects candidates over several result lists.
type fusion struct {
	k    int
	all  []corpus.Candidate
	byID map[string]int
}

func (f *fusion) add(id, url, reason string, hit corpus.Hit) {
	at, ok := f.byID[id]
	if !ok {
		at = len(f.all)
		f.byID[id] = at
		f.all = append(f.all, corpus.Candidate{DocumentID: id, URL: url, Reason: reason})
	}
	f.all[at].Hits = append(f.all[at].Hits, hit)
}

// gate marks what is known and cannot be evidence.
func (f *fusion) gate(g Gate, document func(id string) (corpus.Document, bool, error)) error {
	for i := range f.all {
		c := &f.all[i]
		if c.Reason != "" {
			continue
		}
		d, known, err := document(c.DocumentID)
		if err != nil {
			return fmt.Errorf("read document %s: %w", c.DocumentID, err)
		}
		if !known {
			continue // it will be fetched
		}
		if ok, reason := g.lets(d); !ok {
			c.Reason = dropUnusable + reason
		}
	}
	return nil
}

// onPage reports whether a candidate is no document at all.
func onPage(c corpus.Candidate) bool {
	return c.Reason != "" && c.Reason != DropBelowCut && !strings.HasPrefix(c.Reason, dropUnusable)
}

// ranked scores every candidate by reciprocal-rank fusion, the sum of 1/(k + rank) over the lists
// that it stands in, and keeps the best. A document that a list names twice counts at its better rank.
// Ties go by id. Pages that are no posts come last.
func (f *fusion) ranked(keep int) []corpus.Candidate {
	for i := range f.all {
		c := &f.all[i]
		listed := map[corpus.Hit]bool{}
		for _, h := range c.Hits { // a list's hits come best first
			list := corpus.Hit{Variant: h.Variant, Source: h.Source}
			if !listed[list] {
				listed[list] = true
				c.Score += 1 / float64(f.k+h.Rank)
			}
		}
	}
	sort.Slice(f.all, func(i, j int) bool {
		a, b := f.all[i], f.all[j]
		if onPage(a) != onPage(b) {
			return onPage(b)
		}
		if a.Score != b.Score {
			return a.Score > b.Score
		}
		return a.DocumentID < b.DocumentID
	})
	kept := 0
	for i := range f.all {
		c := &f.all[i]
		switch {
		case c.Reason != "":
		case kept < keep:
			c.Kept = true
			kept++
		default:
			c.Reason = DropBelowCut
		}
	}
	if f.all == nil {
		return []corpus.Candidate{}
	}
	return f.all
}

var (
	userPage      = regexp.MustCompile(`^/(?:user|u)/[^/]+(?:/|$)`)
	wikiPage      = regexp.MustCompile(`^(?:/r/[^/]+)?/(?:wiki|w)(?:/|$)`)
	subredditPage = regexp.MustCompile(`^/r/[^/]+(?:/|$)`)
	postOf        = regexp.MustCompile(`^/(?:(?:r|user|u)/[^/]+/)?comments/([a-z0-9]{2,12})(?:/|$)`)
)

// maskedUser hides user name and password of an address, which is then no place to read from: nothing that anybody wrote
// there may be kept or shown.
func maskedUser(address string) (_, reason string) {
	if clean, had := withoutUser(address); had {
		return strings.Replace(clean, "://", "://***@", 1), DropUserInfo
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 && corpus.Host(address) == "" {
		return "***" + address[at:], DropBadAddress
	}
	return address, ""
}

// canonical tells which document a result leads to. A document of ours is itself; an address on
// Reddit names a post, also where it points at a comment under it. What names no post is dropped, and
// the reason says what it is.
func canonical(r Result, domains []string) (id, address, reason string) {
	if r.DocumentID != "" {
		return r.DocumentID, r.URL, ""
	}
	address, reason = maskedUser(corpus.CanonicalURL(r.URL))
	id = corpus.DocumentID(address)
	if reason != "" {
		return id, address, reason
	}
	host := corpus.Host(address)
	if host == "" {
		return id, address, DropBadAddress
	}
	domain := corpus.RegistrableDomain(host)
	name, post := corpus.RedditFullname(address)
	if post && domain == "redd.it" {
		domain = "reddit.com"
	}
	if !within(domain, domains) {
		return id, address, DropElsewhere
	}
	if domain != "reddit.com" {
		return id, address, ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return id, address, DropBadAddress
	}
	path := strings.ToLower(u.Path)
	if m := postOf.FindStringSubmatch(path); m != nil {
		name = "t3_" + m[1]
		return corpus.RedditID(name), placeAt(address, name).url(true), ""
	}
	switch {
	case post:
		return corpus.RedditID(name), address, ""
	case wikiPage.MatchString(path):
		reason = DropWikiPage
	case userPage.MatchString(path):
		address, reason = "", DropUserPage // the address bears a name
	case subredditPage.MatchString(path):
		reason = DropSubredditPage
	default:
		reason = DropNoPost
	}
	return id, address, reason
}

func within(domain string, domains []string) bool {
	for _, d := range domains {
		if d == domain {
			return true
		}
	}
	return len(domains) == 0
}

// RecallAt is the share of a claim's own documents that are among the first k found, whether their
// bodies are usable or not; false where the claim has none.
func RecallAt(t corpus.Trace, own []string, k int) (float64, bool) {
	want := map[string]bool{}
	for _, id := range own {
		want[id] = true
	}
	if len(want) == 0 {
		return 0, false
	}
	found, rank := 0, 0
	for _, c := range t.Candidates {
		if onPage(c) {
			continue
		}
		if rank++; rank > k {
			break
		}
		if want[c.DocumentID] {
			found++
		}
	}
	return float64(found) / float64(len(want)), true
}
