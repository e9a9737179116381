import type { PhraseBook } from '../../core/texts/phrase-book'
import type { Locale } from '../../http/locale'

/** A kind of data that a take-over removed. `profile` is the name and the fields of an earlier sign-up. */
export type RemovedThing =
  | { readonly kind: 'password' | 'second_factor' | 'sessions' | 'profile' }
  | { readonly kind: 'identity'; readonly provider: string }
  | { readonly kind: 'passkeys'; readonly ids: readonly string[] }

/** Returns the text for the mail that lists the removed data. */
export function nameOfThing({ texts }: { readonly texts: PhraseBook }, thing: RemovedThing, locale: Locale): string {
  return texts.say(locale, `mail.removed.${thing.kind}`, thing.kind === 'identity' ? { provider: thing.provider } : {})
}
