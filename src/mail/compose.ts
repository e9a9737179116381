import type { MailText, TemplateMail } from '../core/mailer'
import type { TextValues } from '../core/texts/fill-in'
import type { PhraseBook } from '../core/texts/phrase-book'
import type { TextKey } from '../core/texts/texts'
import { htmlMail } from './html-mail'
import { loginLines } from './login-lines'
import { signupLine } from './signup-line'
import { type TopicText, wordsOf } from './topics'
import { type ValidThing, validityOf } from './validity'

/** The content of a mail, for the host's template and for ours. */
export interface MailParts extends TemplateMail {
  /** When the link or code was made. The validity counts from this time. Null in notices. */
  issuedAt: Date | null
  /** The host name of the site that asks for the code. Null if the mail has no code, or if the host name is unknown. */
  codeHost: string | null
  /** False: no mail mentions passwords. Default true. */
  hasPasswords?: boolean
}

/**
 * Returns the built-in mail in the reader's language: subject, text and HTML. The text and the HTML contain the whole message and load no
 * external resources.
 */
export function composeMail(texts: PhraseBook, mail: MailParts): MailText {
  const { topic, name, url, expiresAt, issuedAt, locale, provider = '', isFinal, code, hasPasswords = true } = mail
  const say = (key: TextKey, values?: TextValues) => texts.say(locale, key, values)
  const words = wordsOf(topic, hasPasswords)
  const subject = code === undefined ? say(words.subject) : `${say(words.subject)}: ${inGroups(code)}`
  const also = alsoHappened(mail)
  // The lines of the topic `account_taken_over` introduce the list of items. So these lines come last, directly before the list.
  const lines = (topic === 'account_taken_over' ? [...also, ...words.lines] : [...words.lines, ...also]).map((key) =>
    say(key, { provider }),
  )
  const hello = name === null ? say('mail.hello') : say('mail.hello_name', { name })
  const before = [hello, ...lines, ...(mail.signup ? [signupLine(texts, mail.signup, locale)] : [])]
  const items = mail.login ? loginLines(texts, mail.login, locale) : (mail.items ?? [])
  const list = items.length === 0 ? [] : [items.map((item) => `- ${item}`).join('\n')]
  if (expiresAt === null || (url === null && code === undefined)) {
    const after = [say(words.notYou), ...(isFinal ? [say('mail.undo.final')] : [])]
    // Without an end, the link is only a page of the app.
    const page = url === null ? null : { url, label: say(mail.canSignUp ? 'login.sign_up' : 'login.button'), hint: say('mail.button_hint') }
    const presented = page ? [`${page.label}:\n${page.url}`] : []
    const content = { locale, title: subject, before, items, after, ...(page && { link: page }) }
    return { subject, text: plain([...before, ...list, ...presented, ...after]), html: htmlMail(content) }
  }
  const validity = validityOf(texts, { issuedAt: issuedAt ?? expiresAt, expiresAt, locale, thing: thingOf(mail) })
  // The link of a notice undoes the change. Therefore the text above the button says why a person would open the link.
  const isOwn = words.button !== null || code !== undefined
  const [why, after] = isOwn ? [[], [say(words.notYou)]] : [[say(hasPasswords ? 'mail.undo.why' : 'mail.undo.why_without_password')], []]
  const link = url === null ? null : { url, label: say(words.button ?? 'mail.undo.button'), hint: say('mail.button_hint') }
  const presented =
    code === undefined ? null : { code: inGroups(code), ...(mail.codeHost !== null && { last: `@${mail.codeHost} #${code}` }) }
  return {
    subject,
    text: plain([
      ...before,
      ...list,
      ...(presented ? [`${say('mail.code_label')}\n${presented.code}`] : []),
      ...why,
      ...(link ? [`${link.label}:\n${link.url}`] : []),
      validity,
      ...after,
      ...(presented?.last === undefined ? [] : [presented.last]),
    ]),
    html: htmlMail({ locale, title: subject, before, items, ...presented, why, ...(link && { link }), after: [validity, ...after] }),
  }
}

/** Returns the code in two groups of four digits. */
function inGroups(code: string): string {
  return `${code.slice(0, 4)} ${code.slice(4)}`
}

function thingOf({ url, code }: MailParts): ValidThing {
  if (code === undefined) return 'link'
  return url === null ? 'code' : 'both'
}

/** Returns the lines about a second effect of the request, because a person gets only one mail per request. */
function alsoHappened({ topic, provider, usedRecoveryCode, removedPasskeys, canSignUp }: MailParts): TopicText['lines'] {
  if (usedRecoveryCode) return ['mail.recovery_code']
  if (removedPasskeys) return ['mail.passkeys_removed']
  if (canSignUp) return ['mail.can_sign_up']
  return topic === 'account_taken_over' && provider !== undefined ? ['mail.identity_linked.lead'] : []
}

function plain(paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`
}
