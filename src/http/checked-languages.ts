import { ConfigurationError } from '../core/errors'
import { defaultLocaleFault, languageFault } from '../core/texts/language-faults'
import { createPhraseBook, type PhraseBook } from '../core/texts/phrase-book'
import type { Languages } from '../core/texts/texts'

/**
 * Returns all texts, including the host's texts.
 * @throws ConfigurationError for an invalid language or text, and for a default locale without texts
 */
export function checkedLanguages(languages: Languages | undefined, defaultLocale = 'en-US'): PhraseBook {
  const fault = (languages === undefined ? null : languageFault(languages)) ?? defaultLocaleFault(defaultLocale, languages)
  if (fault !== null) throw new ConfigurationError(fault)
  return createPhraseBook(languages)
}
