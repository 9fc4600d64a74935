// Package assay builds fact-verification corpora out of the live web and keeps them alive.
//
// This package is the root of the house: it knows the order of the stages and hands what one package
// has to another that needs it. Read the others bottom-up.
//
// corpus holds the records (Claim, Document, Trace, Label), their ids, canonical addresses, and the
// scales that verdicts are told on. kv stores them: typed buckets over Badger. stats computes
// agreement and intervals.
//
// fetch is the one HTTP client: polite, guarded, and a recorder, so that every page is fetched once
// and can be read again for ever. llm is the one model client; it records every call, so that nothing
// is paid for twice, and it holds the small builtin model that answers without a network. pipeline is
// the stage engine: a memoised call that knows whether its item is still fresh, and why not.
//
// scrapers turns pages and tables into claims. index searches documents. planner turns a claim into
// queries and hits, and reads the dumps that documents come from. annotate labels a claim with a
// document. output writes a release.
//
// The root puts them in a row:
//
//	discover -> parse -> category -> plan -> document -> entity -> zero -> label -> judge -> panel -> control -> cluster -> release
//	discover -> read -> extract -> a person's decision -> parse
//
// A walk (walk.go) goes from the live references through these stages. Build runs what is stale,
// Status explains it, Release collects what is fresh; all three are the same walk over an engine in
// another mode. Import (import.go) fills the store from WARC files, page folders, Reddit dumps, pairs
// and claims tables; Archive (archive.go) writes all of it as one web archive and reads it back. Serve
// (serve.go) answers for a running build through a unix socket.
//
// What is persisted is listed in store.go, what can be configured in config.go.
package assay

// Kinds of stages, in order. A stage's name is kind/plugin.
const (
	KindDiscover = "discover"
	KindParse    = "parse"
	KindRead     = "read"
	KindExtract  = "extract"
	KindCategory = "category"
	KindPlan     = "plan"
	KindDocument = "document"
	KindEntity   = "entity"
	KindZero     = "zero"
	KindLabel    = "label"
	KindJudge    = "judge"
	KindPanel    = "panel"
	KindControl  = "control"
	KindCluster  = "cluster"
	KindRelease  = "release"
)

// StageKind describes one kind of stage.
type StageKind struct {
	Kind string
	Doc  string
}

// Stages lists every kind of stage in order.
func Stages() []StageKind {
	return []StageKind{
		{KindDiscover, "a listing page of a site gives references to item pages and the next listing"},
		{KindParse, "an item page or an imported row gives claims"},
		{KindRead, "an item page of news or an institution gives documents"},
		{KindExtract, "a document gives candidates for claims, which wait for a person"},
		{KindCategory, "a claim whose category no rule tells gives one"},
		{KindPlan, "a claim gives queries and the documents that they find"},
		{KindDocument, "an address that a search or a post leads to gives a document"},
		{KindEntity, "a claim or a document gives what it names, and a claim the events that it asserts"},
		{KindZero, "a claim alone gives the annotator's answer without evidence"},
		{KindLabel, "a claim and a document give a label"},
		{KindJudge, "a claim and what is known of its evidence give a drafted verdict, for people"},
		{KindPanel, "a labelled pair gives the answer of another annotator"},
		{KindControl, "a claim and a document of another claim give the annotator's answer"},
		{KindCluster, "all claims give clusters of those that tell one statement"},
		{KindRelease, "everything that live references reach becomes a folder"},
	}
}
