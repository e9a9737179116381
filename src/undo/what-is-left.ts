import type { LocalizedText } from '../errors'
import type { Locale } from '../http/locale'
import type { UndoPlan } from './plan-undo'

/** What can be used to sign in after an undo, with dates, in the reader's language. */
export function whatIsLeft({ keptIdentities, factor: { totpEnabledAt } }: UndoPlan, mayReset: boolean, locale: Locale): readonly string[] {
  const since = (at: Date) => new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(at)
  return [
    ...(mayReset ? [texts.password[locale]] : []),
    ...keptIdentities.map(({ provider, createdAt }) =>
      texts.identity[locale].replace('{provider}', () => provider).replace('{date}', () => since(createdAt)),
    ),
    ...(totpEnabledAt ? [texts.factor[locale].replace('{date}', () => since(totpEnabledAt))] : []),
  ]
}

const texts = {
  password: {
    'en-US': 'a new password, which you choose with the link that we mail to this address',
    'pt-BR': 'uma nova senha, escolhida com o link que enviamos a este endereço',
  },
  identity: { 'en-US': '“{provider}”, linked on {date}', 'pt-BR': '“{provider}”, vinculado em {date}' },
  factor: {
    'en-US': 'your authenticator app, set up on {date}, as the second step',
    'pt-BR': 'seu aplicativo autenticador, configurado em {date}, como segunda etapa',
  },
} satisfies Record<string, LocalizedText>
