package assay

import (
	"encoding/json"

	"assay/corpus"
	"assay/kv"
	"assay/scrapers"
)

// Tables of a workspace's store that belong to the root. Beside them, fetch keeps exchanges and
// bodies, llm keeps call records, and pipeline keeps one item per (stage, key); each says so in its
// package comment. What of it an archive carries, and what a build makes again, is said at carried.
type tables struct {
	// Rows: (table, number) => a row of an imported claims table or of an import of pairs. A row is a
	// root of the release: parse/<table> turns it into a claim.
	Rows kv.Bucket[scrapers.Row]

	// Links: (row key, document number or id) => an imported (claim, document) pair with the label
	// that its table published.
	Links kv.Bucket[corpus.Link]

	// Pool: document id => a document that came by import, or was read from a site of the recipe, with its
	// place in the order of arrival. The search index is a cache over this table.
	Pool kv.Bucket[Pooled]

	// Shelved: document id => true, for those of the pool that sites gave: see shelf.
	Shelved kv.Bucket[bool]

	// Arrivals: big-endian sequence number => document id, so that the index catches up by reading
	// what it has not seen.
	Arrivals kv.Bucket[string]

	// Ratings: (source, printed rating) => a rating that no map names, waiting for a person.
	Ratings kv.Bucket[QueuedRating]

	// Leads: (identity address, address as found) => where a page was found.
	Leads kv.Bucket[Lead]

	// Shown: (address of a listing, identity address) => a reference that the listing showed once. A listing
	// that grew pushes its items to pages that are not read again, and they stay roots all the same.
	Shown kv.Bucket[corpus.Ref]

	// Published: (source, address of a page) => what the last release says of the page; a refresh tells
	// what is new, changed and gone against it.
	Published kv.Bucket[PublishedPage]

	// Runs: source => the last run that released it without a complaint.
	Runs kv.Bucket[SourceRun]

	// Holds: source => why it may not be released until a person has looked.
	Holds kv.Bucket[Stop]

	// Drift: site => how its pages and listings looked when it was last released.
	Drift kv.Bucket[scrapers.SiteSum]

	// Refreshes: begin of a refresh => how it went.
	Refreshes kv.Bucket[RefreshRun]

	// Voices: claim id => the page or row that speaks for a claim which several tell.
	Voices kv.Bucket[Voice]

	// Memories: claim id => in which run the claim was first met, and the documents that its search kept. What
	// later runs look up (methods, decision 4); written once, never changed.
	Memories kv.Bucket[memorised]

	// Commits: number => what the runs up to then remembered. Only what has a commit is remembered: a run
	// that was killed left memories without one.
	Commits kv.Bucket[commit]

	// Decisions: (kind, id of what is decided on, number) => what one person decided; appended, never
	// changed. An accepted candidate is a root of the release.
	Decisions kv.Bucket[corpus.Decision]

	// Files: path in the workspace => the configuration and prompt files as they were at a backup, so that
	// it is enough to go on. They are in backups, and in stores that were made of one.
	Files kv.Bucket[[]byte]

	// Reports: run start => the report of a build.
	Reports kv.Bucket[json.RawMessage]
}

// Pooled is a stored document and its sequence number. A changed document gets a new number.
type Pooled struct {
	Seq      uint64          `json:"seq"`
	Document corpus.Document `json:"document"`
	Notes    []string        `json:"notes,omitzero"`
	Read     bool            `json:"read,omitzero"` // by a site of the recipe, and not imported
}

// QueuedRating is a rating that waits for a map entry.
type QueuedRating struct {
	Source  string `json:"source"`
	Raw     string `json:"raw"`
	Example string `json:"example"` // address of a page that prints it
}

// Lead says how a page was found.
type Lead struct {
	Address string `json:"address"`
	On      string `json:"on"` // the listing page, or "stored"
}

func openTables(s *kv.Store) tables {
	return tables{
		Rows:      kv.In[scrapers.Row](s, "rows", 1),
		Links:     kv.In[corpus.Link](s, "links", 1),
		Pool:      kv.In[Pooled](s, "pool", 1),
		Shelved:   kv.In[bool](s, "shelved", 1),
		Arrivals:  kv.In[string](s, "arrivals", 1),
		Ratings:   kv.In[QueuedRating](s, "ratings", 1),
		Leads:     kv.In[Lead](s, "leads", 1),
		Voices:    kv.In[Voice](s, "voices", 1),
		Shown:     kv.In[corpus.Ref](s, "shown", 1),
		Published: kv.In[PublishedPage](s, "published", 1),
		Runs:      kv.In[SourceRun](s, "runs", 1),
		Holds:     kv.In[Stop](s, "holds", 1),
		Drift:     kv.In[scrapers.SiteSum](s, "drift", 1),
		Refreshes: kv.In[RefreshRun](s, "refreshes", 1),
		Memories:  kv.In[memorised](s, "memories", 1),
		Commits:   kv.In[commit](s, "commits", 1),
		Decisions: kv.In[corpus.Decision](s, "decisions", 1),
		Files:     kv.In[[]byte](s, "files", 1),
		Reports:   kv.In[json.RawMessage](s, "reports", 1),
	}
}
