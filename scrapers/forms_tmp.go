package scrapers

import "regexp"

var (
	bbcForm       = articleForm{Body: ".story-body__inner p, [data-component=text-block] p", Drop: regexp.MustCompile(`^These are external links and will open in a new window$`)}
	apForm        = articleForm{Title: ".Page-headline, h1[class^=Component-heading]", Body: ".Article p, .RichTextStoryBody p, block p"}
	reutersForm   = articleForm{Body: `[data-testid^=paragraph-], .StandardArticleBody_body p, [class^=ArticleBodyWrapper] p, [class*=ArticleBody-container] p, #articleText p`}
	billboardForm = articleForm{}
	peopleForm    = articleForm{}
	nbcForm       = articleForm{Title: `h1[itemprop=headline], h1`, Body: ".article-body__content p, section.articlebody p", Drop: regexp.MustCompile(`^This site is protected by recaptcha`)}
	nprForm       = articleForm{Body: "#storytext > p"}
	cdcForm       = articleForm{}
	nasaForm      = articleForm{}
)
