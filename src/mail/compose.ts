import type { LocalizedText } from '../errors'
import type { Locale } from '../http/locale'
import type { MailText, TemplateMail } from '../mailer'
import { htmlMail } from './html-mail'
import { topics } from './topics'
import { validityOf } from './validity'

/** What a mail is made of, whoever makes it. */
export interface MailParts extends TemplateMail {
  /** When the link was made; what it is valid for is counted from here. Null in notices. */
  issuedAt: Date | null
}

/** The built-in mail: subject, text and HTML in the reader's language, both complete, and no load from anywhere. */
export function composeMail({ topic, name, url, expiresAt, issuedAt, locale, provider }: MailParts): MailText {
  const text = topics[topic]
  const subject = text.subject[locale]
  const before = [greeting(name, locale), ...text.lines.map((line) => line[locale].replace('{provider}', () => provider ?? ''))]
  const after = [text.notYou[locale]]
  if (url === null || expiresAt === null || !('button' in text)) {
    return { subject, text: plain([...before, ...after]), html: htmlMail({ locale, title: subject, before, after }) }
  }
  const validity = validityOf(issuedAt ?? expiresAt, expiresAt, locale)
  const link = { url, label: text.button[locale], hint: buttonHint[locale] }
  return {
    subject,
    text: plain([...before, `${link.label}:\n${url}`, validity, ...after]),
    html: htmlMail({ locale, title: subject, before, link, after: [validity, ...after] }),
  }
}

const buttonHint: LocalizedText = {
  'en-US': 'If the button does not work, copy this link into your browser:',
  'pt-BR': 'Se o botão não funcionar, copie este link para o navegador:',
}

function greeting(name: string | null, locale: Locale): string {
  if (locale === 'pt-BR') return name === null ? 'Olá!' : `Olá, ${name}!`
  return name === null ? 'Hello,' : `Hello ${name},`
}

function plain(paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`
}
