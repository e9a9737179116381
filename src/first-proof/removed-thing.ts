import type { LocalizedText } from '../errors'
import type { Locale } from '../http/locale'

/** One thing that a take-over removed. `profile`: the name and fields of an earlier signup. */
export type RemovedThing =
  | { readonly kind: 'password' | 'second_factor' | 'sessions' | 'profile' }
  | { readonly kind: 'identity'; readonly provider: string }

/** For the mail that names what was removed. */
export function nameOfThing(thing: RemovedThing, locale: Locale): string {
  return thing.kind === 'identity' ? `${names.identity[locale]} “${thing.provider}”` : names[thing.kind][locale]
}

const names: Readonly<Record<RemovedThing['kind'], LocalizedText>> = {
  password: { 'en-US': 'the password', 'pt-BR': 'a senha' },
  second_factor: { 'en-US': 'two-step verification', 'pt-BR': 'a verificação em duas etapas' },
  sessions: { 'en-US': 'every open session', 'pt-BR': 'todas as sessões abertas' },
  profile: { 'en-US': 'the name and the details of the profile', 'pt-BR': 'o nome e os dados do perfil' },
  identity: { 'en-US': 'the sign-in provider', 'pt-BR': 'o provedor de login' },
}
