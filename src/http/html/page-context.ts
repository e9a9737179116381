import type { Settings } from '../../core/config/every-setting'
import type { Logger } from '../../core/logger'
import type { Templates } from '../../core/templates'
import type { PhraseBook } from '../../core/texts/phrase-book'
import type { Theme } from '../../core/theme/theme'
import type { SiteContext } from '../same-site'

/** What a page needs to be shown. */
export interface PageContext extends SiteContext {
  readonly settings: Settings
  readonly prefix: string
  readonly templates: Templates
  readonly texts: PhraseBook
  readonly theme: Theme
  readonly logger: Logger
}
