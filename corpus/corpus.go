// Package corpus holds the records that every other package talks about: claims, documents,
// traces, labels, and the pure rules that belong to them: identity, canonical addresses, the
// six-way scale and its projections, and the map from a source's ratings to that scale.
//
// It stores nothing and reaches nothing; a record is a value.
package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Ref leads to a claim: the address of a page that a site recognises as a fact-check, or the
// key of a row of an imported table.
type Ref struct {
	Source  string `json:"source"`           // name of the site or table
	URL     string `json:"url,omitzero"`     // canonical address of the page
	Found   string `json:"found,omitzero"`   // the address as it was written, where that is lost in URL
	Row     string `json:"row,omitzero"`     // key of the imported row, for tables
	Speaker string `json:"speaker,omitzero"` // speaker's slug, where the listing tells it
}

// A Claim is one checked statement in one wording. A changed verdict is a new version of the same
// claim; a changed text is another claim (methods: claim identity).
type Claim struct {
	ID          string        `json:"id"`
	Text        string        `json:"text"`
	Speaker     string        `json:"speaker,omitzero"`
	SpeakerSlug string        `json:"speaker_slug,omitzero"`
	RatingRaw   string        `json:"rating_raw,omitzero"` // as printed
	Rating      string        `json:"rating,omitzero"`     // the source's slug, e.g. pants_on_fire
	Verdict6    Verdict       `json:"verdict6,omitzero"`   // six-way scale; empty while the rating is unmapped
	Status      VerdictStatus `json:"verdict_status,omitzero"`
	StatedDate  string        `json:"stated_date,omitzero"` // 2006-01-02, in the page's own zone
	Medium      string        `json:"medium,omitzero"`
	ReviewURL   string        `json:"review_url,omitzero"`
	ReviewDate  string        `json:"review_date,omitzero"` // 2006-01-02
	Title       string        `json:"title,omitzero"`
	Authors     []string      `json:"authors,omitzero"`
	Tags        []string      `json:"tags,omitzero"`
	Flags       []string      `json:"flags,omitzero"`      // sorted; see Flag*
	Source      string        `json:"source"`              // site or table
	Position    int           `json:"position,omitzero"`   // of the claim on its page, from 0
	Number      int           `json:"number,omitzero"`     // row number in the table it was imported from
	Supersedes  string        `json:"supersedes,omitzero"` // the claim in whose place on the page this one came
	Earlier     []Ruling      `json:"earlier,omitzero"`    // what was ruled on this wording before, oldest first

	// What the walk finds out about a claim; no parse stage fills it.
	Category           Category `json:"category,omitzero"`
	CategoryFrom       string   `json:"category_from,omitzero"`       // CategoryFromRule or CategoryFromModel
	CategoryConfidence float64  `json:"category_confidence,omitzero"` // 0 to 1

	// Where a claim that a person accepted stands; see CandidateClaim. A reviewed claim has none.
	StatedIn   string `json:"stated_in,omitzero"`   // document id
	StatedURL  string `json:"stated_url,omitzero"`  // the document's address
	StatedSpan Span   `json:"stated_span,omitzero"` // of the document's text
}

// A Ruling is a verdict that a source gave before it changed its mind.
type Ruling struct {
	RatingRaw string  `json:"rating_raw"` // as printed
	Rating    string  `json:"rating"`     // the source's slug, "" while no map names what was printed
	Verdict6  Verdict `json:"verdict6"`   // six-way scale, "" likewise
	Seen      string  `json:"seen"`       // when it was first retrieved, RFC 3339, UTC
}

// Flags that a claim, document or pair may carry.
const (
	FlagSiteTest        = "site_test"        // the site's own test entry; never released
	FlagUnmapped        = "rating_unmapped"  // waits in the rating queue; never released
	FlagQuoteUnverified = "quote_unverified" // the quote does not occur in the document
	FlagInjection       = "injection_suspected"
	FlagUnstable        = "unstable"           // repeated samples of the annotator disagree, see Stability
	FlagTruncated       = "document_truncated" // the annotator saw a cut document
	FlagZoneUnknown     = "zone_unknown"       // a time is printed whose zone is unknown, so only its day is kept
	FlagPageTruncated   = "page_truncated"     // the stored page breaks off, so fields may be missing
	FlagDateUnread      = "date_unread"        // a date is printed that is none, so there is none
	FlagRepaired        = "markup_repaired"    // the page's ClaimReview was broken and could be mended
	FlagBadMarkup       = "markup_bad"         // a script of the page's markup was given up; the page itself was read
	FlagDisagrees       = "markup_disagrees"   // the page and its ClaimReview tell another rating or another claim
	FlagHeadline        = "claim_is_headline"  // the site prints no claim: the text is the review's own headline
)

// VerdictStatus says where a verdict comes from; only source, human and adjudicated are gold.
type VerdictStatus string

// The values of VerdictStatus.
const (
	StatusSource      VerdictStatus = "source"
	StatusDraft       VerdictStatus = "llm_draft"
	StatusHuman       VerdictStatus = "human"
	StatusAdjudicated VerdictStatus = "adjudicated"
)

// Kinds of documents.
const (
	KindRedditPost    = "reddit_post"
	KindRedditComment = "reddit_comment"
	KindLinkedArticle = "linked_article"
	KindPage          = "page"
	KindRecord        = "record"     // of an interface's reply, its fields told in sentences
	KindFactCheck     = "fact_check" // the review of a fact-checker of the recipe, as evidence on other claims
)

// BodyStatus says what a document's text is worth.
type BodyStatus string

// The values of BodyStatus. Only BodyFull and BodyPartial are usable evidence.
const (
	BodyFull    BodyStatus = "full"
	BodyPartial BodyStatus = "partial" // a teaser, or cut
	BodyMissing BodyStatus = "missing" // a link post or an empty body
	BodyDeleted BodyStatus = "deleted" // by its author
	BodyRemoved BodyStatus = "removed" // by a moderator or the site
	BodyShort   BodyStatus = "short"   // fewer than MinAlphanumerics beside links
)

// How far a date of publication is to be believed, see Document.Confidence. Low is a hint: the day on
// which a server last wrote the file.
const (
	ConfidenceHigh   = "high"
	ConfidenceMedium = "medium"
	ConfidenceLow    = "low"
)

// Values of Document.Via: whose capture of a page was read.
const (
	ViaWayback     = "wayback"     // the Wayback Machine's
	ViaCommonCrawl = "commoncrawl" // Common Crawl's
)

// A Document is a function of its address alone, never of the search that led to it.
type Document struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind"`
	Title       string     `json:"title,omitzero"`
	Text        string     `json:"text,omitzero"`
	URL         string     `json:"url,omitzero"`
	Source      string     `json:"source,omitzero"`       // reddit.com/r/<name>, or the host
	PublishedAt string     `json:"published_at,omitzero"` // RFC 3339, UTC, or a date where only that is known
	PublishedBy string     `json:"published_by,omitzero"` // what told PublishedAt: json_ld, meta, time, url, file, http; "" for an interface's own field
	Confidence  string     `json:"published_confidence,omitzero"`
	Authors     []string   `json:"authors,omitzero"`      // as printed; for an alert, the office that issued it
	Tags        []string   `json:"tags,omitzero"`         // sections and keywords of the page
	RetrievedAt string     `json:"retrieved_at,omitzero"` // of the stored response or dump, RFC 3339
	Via         string     `json:"via,omitzero"`          // wayback: the text is that of a capture, since the page is gone; "" for the page itself
	CapturedAt  string     `json:"captured_at,omitzero"`  // of the capture, RFC 3339
	BodyStatus  BodyStatus `json:"body_status"`
	SHA256      string     `json:"sha256"`            // of Content()
	Outbound    string     `json:"outbound,omitzero"` // where a link post links to
	Parent      string     `json:"parent,omitzero"`   // id of the post or comment that a comment answers
	Revision    string     `json:"revision,omitzero"` // of the text, as its source numbers it
	Licence     string     `json:"licence,omitzero"`  // under which its source gives the text, "" where it does not say
	Flags       []string   `json:"flags,omitzero"`
	Number      int        `json:"number,omitzero"` // row number in the table it was imported from
}

// Content is what a document says: title, blank line, text. A comment has no title.
func (d Document) Content() string {
	switch {
	case d.Text == "":
		return d.Title
	case d.Title == "":
		return d.Text
	}
	return d.Title + "\n\n" + d.Text
}

// Seal makes title and text valid UTF-8 and fills SHA256 from the content.
func (d Document) Seal() Document {
	d.Title, d.Text = readable(d.Title), readable(d.Text)
	sum := sha256.Sum256([]byte(d.Content()))
	d.SHA256 = hex.EncodeToString(sum[:])
	return d
}

// readable is a text without what no text has: NUL is dropped, bytes that are not UTF-8 are replaced.
func readable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// A Hit is one search result as a query variant returned it.
type Hit struct {
	Variant int    `json:"variant"`      // index of the query in Trace.Queries; -1 for an imported pair
	Rank    int    `json:"rank"`         // from 1
	Source  string `json:"source"`       // backend, or the table of an imported pair
	Via     string `json:"via,omitzero"` // the title that led to the document, where that is not its own
}

// A Candidate is a document that a search led to, with every hit that found it.
type Candidate struct {
	DocumentID string  `json:"document_id"`
	URL        string  `json:"url,omitzero"`
	Hits       []Hit   `json:"hits"`
	Score      float64 `json:"score"` // reciprocal-rank fusion over the hits
	Kept       bool    `json:"kept"`
	Reason     string  `json:"reason,omitzero"` // why it was dropped
}

// A Trace is what the planner did for one claim: replayable, and readable by a person.
type Trace struct {
	ClaimID    string      `json:"claim_id"`
	Policy     string      `json:"policy"`
	AsOf       string      `json:"as_of,omitzero"`
	Memory     string      `json:"memory,omitzero"` // snapshot of what earlier runs kept, that the search could read
	Queries    []string    `json:"queries"`
	Candidates []Candidate `json:"candidates"`    // best first
	Call       string      `json:"call,omitzero"` // the model call that wrote the queries

	// Of an agentic search alone.
	Subclaims []Subclaim `json:"subclaims,omitzero"`
	Steps     []Step     `json:"steps,omitzero"`
	Evidence  []Evidence `json:"evidence,omitzero"` // the last state, by document and subclaim
	Stop      string     `json:"stop,omitzero"`     // why the search ended
	Calls     []string   `json:"calls,omitzero"`    // every model call paid for it, in order
}

// ModelCalls lists every model call that the search paid for.
func (t Trace) ModelCalls() []string {
	if t.Call == "" {
		return t.Calls
	}
	return append([]string{t.Call}, t.Calls...)
}

// Kept returns the candidates that became evidence, best first.
func (t Trace) Kept() []Candidate {
	var kept []Candidate
	for _, c := range t.Candidates {
		if c.Kept {
			kept = append(kept, c)
		}
	}
	return kept
}

// A Link is an imported (claim, document) pair, with the label that the table published.
type Link struct {
	Row        string      `json:"row"` // key of the claim's imported row
	DocumentID string      `json:"document_id"`
	URL        string      `json:"url,omitzero"` // of a document that is a page, and did not come with the table
	Label      StanceLabel `json:"label,omitzero"`
	Number     int         `json:"number,omitzero"` // document number in the table
	Rank       int         `json:"rank"`            // order within the claim, from 1
}

// StanceLabel is what a document does to a model's verdict on a claim.
type StanceLabel string

// The three labels of RAGuard.
const (
	Supporting StanceLabel = "supporting"
	Misleading StanceLabel = "misleading"
	Unrelated  StanceLabel = "unrelated"
)

// StanceLabels lists the labels in the order in which tables show them.
var StanceLabels = []StanceLabel{Supporting, Misleading, Unrelated}

// Answer is what an annotator replies about a claim.
type Answer string

// The values of Answer.
const (
	AnswerTrue      Answer = "true"
	AnswerFalse     Answer = "false"
	AnswerUnrelated Answer = "unrelated"
	AnswerUnknown   Answer = "unknown" // zero-context control only
)

// Effect compares an annotator's answer without the document to its answer with it.
type Effect string

// The values of Effect (methods 3.1). Only EffectFlip is causally misleading.
const (
	EffectConfirm Effect = "confirm" // right without, right with
	EffectCorrect Effect = "correct" // wrong without, right with
	EffectFlip    Effect = "flip"    // right without, wrong with
	EffectInherit Effect = "inherit" // wrong without, wrong with
	EffectAbstain Effect = "abstain" // the document decides nothing
	EffectUnknown Effect = "unknown" // no usable answer without
)

// EffectOf compares the answers to the gold binary verdict.
func EffectOf(zero, with Answer, gold bool) Effect {
	right := func(a Answer) bool { return (a == AnswerTrue) == gold }
	switch {
	case zero != AnswerTrue && zero != AnswerFalse:
		return EffectUnknown
	case with == AnswerUnrelated:
		return EffectAbstain
	case right(zero) && right(with):
		return EffectConfirm
	case right(with):
		return EffectCorrect
	case right(zero):
		return EffectFlip
	}
	return EffectInherit
}

// LabelOf maps an answer with the claim's verdict.
func LabelOf(a Answer, gold bool) StanceLabel {
	switch {
	case a == AnswerUnrelated:
		return Unrelated
	case (a == AnswerTrue) == gold:
		return Supporting
	}
	return Misleading
}

// LabelStatus says whether a label may leave the house.
type LabelStatus string

// The values of LabelStatus.
const (
	LabelDone LabelStatus = "labelled"
	LabelHeld LabelStatus = "held" // flagged for injection; waits for a person
)

// A Label is the outcome of one protocol for one (claim, document) pair.
type Label struct {
	ID         string      `json:"id"` // PairID
	ClaimID    string      `json:"claim_id"`
	DocumentID string      `json:"document_id"`
	Protocol   string      `json:"protocol"`
	Label      StanceLabel `json:"label"`
	Answer     Answer      `json:"answer"`
	Zero       Answer      `json:"zero_answer,omitzero"`
	Effect     Effect      `json:"effect,omitzero"`
	Quote      string      `json:"quote,omitzero"`
	Reason     string      `json:"reason,omitzero"`
	Status     LabelStatus `json:"status"`
	Flags      []string    `json:"flags,omitzero"`
	Call       string      `json:"call"`           // id of the call record that answered
	Calls      []string    `json:"calls,omitzero"` // every call paid for this label, that one included

	Stability *Stability `json:"stability,omitempty"` // nil where the annotator was asked once
}

// Stability is how repeated samples of one annotator on one pair came out.
type Stability struct {
	Samples int            `json:"samples"` // how many were asked for
	Votes   map[Answer]int `json:"votes"`   // answers; samples without one are in none
	Margin  float64        `json:"margin"`  // of Samples, the share of the first answer less that of the second
}

// An Annotation is what one annotator of a panel made of a pair.
type Annotation struct {
	Annotator string      `json:"annotator"` // role of the recipe
	Model     string      `json:"model"`
	Outcome   string      `json:"outcome"` // labelled; else why there is no label, such as refused
	Label     StanceLabel `json:"label"`   // "" without one
	Answer    Answer      `json:"answer"`
	Zero      Answer      `json:"zero_answer"`
	Effect    Effect      `json:"effect"`
	Call      string      `json:"call"` // "" without a label
}

// AddFlag returns flags with f, sorted and without repeats.
func AddFlag(flags []string, f string) []string {
	for i, have := range flags {
		if have == f {
			return flags
		}
		if have > f {
			out := append([]string{}, flags[:i]...)
			return append(append(out, f), flags[i:]...)
		}
	}
	return append(append([]string{}, flags...), f)
}

// HasFlag reports whether flags holds f.
func HasFlag(flags []string, f string) bool {
	for _, have := range flags {
		if have == f {
			return true
		}
	}
	return false
}

// ExcludedError is an outcome, not a failure: the item is known, understood and left out.
type ExcludedError struct {
	Reason string // stable slug: flip_o_meter, gone, robots, blocked, unusable_body, ...
	Detail string // for a person
}

func (e *ExcludedError) Error() string {
	if e.Detail == "" {
		return "excluded: " + e.Reason
	}
	return "excluded: " + e.Reason + ": " + e.Detail
}

// Excluded returns the reason; the engine recognises an exclusion by this method.
func (e *ExcludedError) Excluded() string { return e.Reason }

// Exclude makes an exclusion with a reason slug and a detail for people.
func Exclude(reason, detail string) error {
	return &ExcludedError{Reason: reason, Detail: strings.TrimSpace(detail)}
}
