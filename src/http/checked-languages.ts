import { ConfigurationError } from '../errors'
import { defaultLocaleFault, languageFault } from '../texts/language-faults'
import { createPhraseBook, type PhraseBook } from '../texts/phrase-book'
import type { Languages } from '../texts/texts'

/**
 * Returns all texts, including the host's texts.
 * @throws ConfigurationError for an invalid language or text, and for a default locale without texts
 */
export function checkedLanguages(languages: Languages | undefined, defaultLocale = 'en-US'): PhraseBook {
  const fault = (languages === undefined ? null : languageFault(languages)) ?? defaultLocaleFault(defaultLocale, languages)
  if (fault !== null) throw new ConfigurationError(fault)
  return createPhraseBook(languages)
}
