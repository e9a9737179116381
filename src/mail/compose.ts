import type { LocalizedText } from '../errors'
import type { Locale } from '../http/locale'
import type { AuthMail } from '../mailer'

/** What a mail says; `notice` mails tell an owner of something and ask for nothing. */
export type MailTopic = 'activation' | 'password_reset' | 'address_taken' | 'password_changed'

export interface MailContent {
  topic: MailTopic
  /** The address stored with the account, never one a request brought. */
  to: string
  name: string | null
  /** Whether the mail says the name: words of whoever signed up, until the address is proven. */
  saysName: boolean
  locale: Locale
  link?: { url: string; expiresAt: Date }
}

/** Plain and complete: subject, text and HTML in the reader's language, and no load from anywhere. */
export function composeMail({ topic, to, name, saysName, locale, link }: MailContent): AuthMail {
  const { kind, subject, lines } = topics[topic]
  const greeting = name === null || !saysName ? greetings.anyone[locale] : `${greetings.named[locale]} ${oneLine(name)},`
  const paragraphs = [greeting, ...lines.map((line) => line[locale]), ...(link ? [link.url, validUntil(link.expiresAt, locale)] : [])]
  return {
    kind,
    to,
    name,
    url: link?.url ?? null,
    expiresAt: link?.expiresAt ?? null,
    locale,
    subject: subject[locale],
    text: `${paragraphs.join('\n\n')}\n`,
    html: document(locale, subject[locale], paragraphs, link?.url ?? null),
  }
}

const greetings: Record<'anyone' | 'named', LocalizedText> = {
  anyone: { 'en-US': 'Hello,', 'pt-BR': 'Olá,' },
  named: { 'en-US': 'Hello', 'pt-BR': 'Olá,' },
}

const ignoreIt: LocalizedText = {
  'en-US': 'If you did not ask for this, you can ignore this mail: nothing has changed.',
  'pt-BR': 'Se você não pediu isto, ignore este e-mail: nada mudou.',
}

const topics: Record<MailTopic, { kind: AuthMail['kind']; subject: LocalizedText; lines: readonly LocalizedText[] }> = {
  activation: {
    kind: 'activation',
    subject: { 'en-US': 'Activate your account', 'pt-BR': 'Ative sua conta' },
    lines: [ignoreIt, { 'en-US': 'Open this link to activate your account:', 'pt-BR': 'Abra este link para ativar sua conta:' }],
  },
  password_reset: {
    kind: 'password_reset',
    subject: { 'en-US': 'Choose a new password', 'pt-BR': 'Escolha uma nova senha' },
    lines: [ignoreIt, { 'en-US': 'Open this link to choose a new password:', 'pt-BR': 'Abra este link para escolher uma nova senha:' }],
  },
  address_taken: {
    kind: 'notice',
    subject: { 'en-US': 'You already have an account', 'pt-BR': 'Você já tem uma conta' },
    lines: [
      {
        'en-US': 'Somebody tried to sign up with this address, which already has an account. Nothing has changed.',
        'pt-BR': 'Alguém tentou criar uma conta com este endereço, que já tem uma. Nada mudou.',
      },
      {
        'en-US': 'If it was you, sign in instead, or ask for a new password.',
        'pt-BR': 'Se foi você, entre na sua conta ou peça uma nova senha.',
      },
    ],
  },
  password_changed: {
    kind: 'notice',
    subject: { 'en-US': 'Your password was changed', 'pt-BR': 'Sua senha foi alterada' },
    lines: [
      {
        'en-US': 'The password of your account was just changed. If it was not you, ask for a new password at once.',
        'pt-BR': 'A senha da sua conta acaba de ser alterada. Se não foi você, peça uma nova senha imediatamente.',
      },
    ],
  },
}

function validUntil(expiresAt: Date, locale: Locale): string {
  const instant = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(expiresAt)
  return locale === 'pt-BR' ? `O link vale até ${instant} (UTC).` : `The link is valid until ${instant} (UTC).`
}

function document(locale: Locale, title: string, paragraphs: readonly string[], url: string | null): string {
  const body = paragraphs.map(
    (text) => `<p>${text === url ? `<a href="${escapeHtml(text)}">${escapeHtml(text)}</a>` : escapeHtml(text)}</p>`,
  )
  return `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head><body>${body.join('')}</body></html>`
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities.get(character) ?? character)
}

/** A name is the person's own words: it must not begin a line, and with it a header or a paragraph, of its own. */
function oneLine(name: string): string {
  return name.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 120)
}
