import type { LocalizedText } from '../errors'
import type { Locale } from '../http/locale'
import type { MailText, TemplateMail } from '../mailer'
import { htmlMail } from './html-mail'
import { signupLine } from './signup-line'
import { topics } from './topics'
import { validityOf } from './validity'

/** What a mail is made of, whoever makes it. */
export interface MailParts extends TemplateMail {
  /** When the link was made; what it is valid for is counted from here. Null in notices. */
  issuedAt: Date | null
}

/** The built-in mail: subject, text and HTML in the reader's language, both complete, and no load from anywhere. */
export function composeMail(mail: MailParts): MailText {
  const { topic, name, url, expiresAt, issuedAt, locale, provider, items = [], isFinal } = mail
  const text = topics[topic]
  const subject = text.subject[locale]
  const lines = [...text.lines, ...alsoHappened(mail)].map((line) => line[locale].replace('{provider}', () => provider ?? ''))
  const before = [greeting(name, locale), ...lines, ...(mail.signup ? [signupLine(mail.signup, locale)] : [])]
  const list = items.length === 0 ? [] : [items.map((item) => `- ${item}`).join('\n')]
  if (url === null || expiresAt === null) {
    const after = [text.notYou[locale], ...(isFinal ? [undoTexts.isFinal[locale]] : [])]
    return { subject, text: plain([...before, ...list, ...after]), html: htmlMail({ locale, title: subject, before, items, after }) }
  }
  const validity = validityOf(issuedAt ?? expiresAt, expiresAt, locale)
  // A notice has no button of its own: its link undoes the change, and the reason stands before it.
  const [button, why, after] = 'button' in text ? [text.button, [], [text.notYou[locale]]] : [undoTexts.button, [undoTexts.why[locale]], []]
  const link = { url, label: button[locale], hint: buttonHint[locale] }
  return {
    subject,
    text: plain([...before, ...list, ...why, `${link.label}:\n${url}`, validity, ...after]),
    html: htmlMail({ locale, title: subject, before, items, why, link, after: [validity, ...after] }),
  }
}

/** What the same request did besides: one person gets one mail of it. */
function alsoHappened({ topic, provider, usedRecoveryCode }: MailParts): readonly LocalizedText[] {
  if (usedRecoveryCode) return [recoveryCodeLine]
  return topic === 'account_taken_over' && provider !== undefined ? topics.identity_linked.lines : []
}

const recoveryCodeLine: LocalizedText = {
  'en-US': 'A recovery code confirmed this change. Each code works only once.',
  'pt-BR': 'Um código de recuperação confirmou esta alteração. Cada código vale uma única vez.',
}

const undoTexts = {
  why: {
    'en-US':
      'If it was not you, undo the change with the link below. Your account goes back to how it was, every session ends, and you choose a new password.',
    'pt-BR':
      'Se não foi você, desfaça a alteração com o link abaixo. Sua conta volta a ser como era, todas as sessões são encerradas e você escolhe uma nova senha.',
  },
  button: { 'en-US': 'Undo this change', 'pt-BR': 'Desfazer esta alteração' },
  isFinal: {
    'en-US': 'A code of your authenticator app confirmed this change, so no link can undo it.',
    'pt-BR': 'Um código do seu aplicativo autenticador confirmou esta alteração, por isso nenhum link pode desfazê-la.',
  },
} satisfies Record<string, LocalizedText>

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
