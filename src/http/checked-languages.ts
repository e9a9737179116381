import { ConfigurationError } from '../errors'
import { defaultLocaleFault, languageFault } from '../texts/language-faults'
import { createPhraseBook, type PhraseBook } from '../texts/phrase-book'
import type { Languages } from '../texts/texts'

/**
 * Returns all texts, including those of the host.
 * @throws ConfigurationError for a language or text that cannot be used, and for a default locale that has no texts
 */
export function checkedLanguages(languages: Languages | undefined, defaultLocale = 'en-US'): PhraseBook {
  const fault = (languages === undefined ? null : languageFault(languages)) ?? defaultLocaleFault(defaultLocale, languages)
  if (fault !== null) throw new ConfigurationError(fault)
  return createPhraseBook(languages)
}
