import type { Locale } from '../http/locale'
import type { PhraseBook } from '../texts/phrase-book'

/** One thing that a take-over removed. `profile`: the name and fields of an earlier signup. */
export type RemovedThing =
  | { readonly kind: 'password' | 'second_factor' | 'sessions' | 'profile' }
  | { readonly kind: 'identity'; readonly provider: string }
  | { readonly kind: 'passkeys'; readonly ids: readonly string[] }

/** For the mail that names what was removed. */
export function nameOfThing({ texts }: { readonly texts: PhraseBook }, thing: RemovedThing, locale: Locale): string {
  return texts.say(locale, `mail.removed.${thing.kind}`, thing.kind === 'identity' ? { provider: thing.provider } : {})
}
