import type { Settings } from '../config/every-setting'
import type { SiteContext } from '../http/same-site'
import type { Logger } from '../logger'
import type { Templates } from '../page-templates'
import type { PhraseBook } from '../texts/phrase-book'
import type { Theme } from '../theme/theme'

/** What a page needs to be shown. */
export interface PageContext extends SiteContext {
  readonly settings: Settings
  readonly prefix: string
  readonly templates: Templates
  readonly texts: PhraseBook
  readonly theme: Theme
  readonly logger: Logger
}
