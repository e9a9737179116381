import type { AuthMail, MailText, MailTopic, TemplateMail } from '../core/mailer'
import { directionOf, isTextKey, type PhraseBook, type TextKey, type TextValues } from '../core/texts/phrase-book'
import { type Html, html } from '../http/html/document'
import type { Locale } from '../http/locale'

export interface MailParts extends TemplateMail {
  /** The validity counts from this time. Null in notices. */
  issuedAt: Date | null
  /** Of the site that asks for the code. Null: no code, or unknown. */
  codeHost: string | null
  /** False: no mail mentions passwords. Default true. */
  hasPasswords?: boolean
}

/** The text and the HTML contain the whole message and load no external resources. */
export function composeMail(texts: PhraseBook, mail: MailParts): MailText {
  const { topic, name, url, expiresAt, issuedAt, locale, provider = '', isFinal, code, codeExpiresAt, hasPasswords = true } = mail
  const say = (key: TextKey, values?: TextValues) => texts.say(locale, key, values)
  const words = wordsOf(topic, hasPasswords)
  const subject = code === undefined ? say(words.subject) : `${say(words.subject)}: ${inGroups(code)}`
  const also = alsoHappened(mail)
  // These lines introduce the list of items, so they come directly before it.
  const lines = (topic === 'account_taken_over' ? [...also, ...words.lines] : [...words.lines, ...also]).map((key) =>
    say(key, { provider }),
  )
  const hello = name === null ? say('mail.hello') : say('mail.hello_name', { name })
  const before = [hello, ...codeWarning(texts, mail), ...lines, ...(mail.signup ? [signupLine(texts, mail.signup, locale)] : [])]
  const items = mail.login ? loginLines(texts, mail.login, locale) : (mail.items ?? [])
  const list = items.length === 0 ? [] : [items.map((item) => `- ${item}`).join('\n')]
  if (expiresAt === null || (url === null && code === undefined)) {
    const after = [say(words.notYou), ...(isFinal ? [say('mail.undo.final')] : [])]
    // Without an end, the link is only a page of the app.
    const page =
      url === null
        ? null
        : { url, label: say(words.button ?? (mail.canSignUp ? 'login.sign_up' : 'login.button')), hint: say('mail.button_hint') }
    const presented = page ? [`${page.label}:\n${page.url}`] : []
    const content = { locale, title: subject, before, items, after, ...(page && { link: page }) }
    return { subject, text: plain([...before, ...list, ...presented, ...after]), html: htmlMail(content) }
  }
  const from = issuedAt ?? expiresAt
  const validity = codeExpiresAt
    ? [
        validityOf(texts, { issuedAt: from, expiresAt, locale, thing: 'link' }),
        validityOf(texts, { issuedAt: from, expiresAt: codeExpiresAt, locale, thing: 'code' }),
      ]
    : [validityOf(texts, { issuedAt: from, expiresAt, locale, thing: thingOf(mail) })]
  // The link of a notice undoes the change, so the text above the button says why a person would open it.
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
      ...(presented ? [`${say(codeExpiresAt ? 'mail.code_beside' : 'mail.code_label')}\n${presented.code}`] : []),
      ...why,
      ...(link ? [`${link.label}:\n${link.url}`] : []),
      ...validity,
      ...after,
      ...(presented?.last === undefined ? [] : [presented.last]),
    ]),
    html: htmlMail({
      locale,
      title: subject,
      before,
      items,
      ...(presented && codeExpiresAt && { codeLabel: say('mail.code_beside') }),
      ...presented,
      why,
      ...(link && { link }),
      after: [...validity, ...after],
    }),
  }
}

const warnsOfCode: ReadonlySet<MailTopic> = new Set<MailTopic>(['password_reset', 'email_change'])

/** A phishing site would ask for the code. */
function codeWarning(texts: PhraseBook, { topic, asked, locale }: MailParts): string[] {
  if (!asked || asked.host === null || !warnsOfCode.has(topic)) return []
  const { host, at, browser } = asked
  const time = instantInWords(at, locale)
  return [
    browser === null
      ? texts.say(locale, 'mail.type_only', { host, time })
      : texts.say(locale, 'mail.type_only_with', { host, time, browser }),
  ]
}

function inGroups(code: string): string {
  return `${code.slice(0, 4)} ${code.slice(4)}`
}

function thingOf({ topic, url, code }: MailParts): ValidThing {
  if (code === undefined) return 'link'
  return url === null || topic === 'device_code' ? 'code' : 'both'
}

/** A person gets only one mail per request, so it also tells a second effect. */
function alsoHappened({
  topic,
  provider,
  usedRecoveryCode,
  removedPasskeys,
  canSignUp,
  hasInvitation,
  isLeaving,
}: MailParts): TopicText['lines'] {
  if (usedRecoveryCode) return ['mail.recovery_code']
  if (removedPasskeys) return ['mail.passkeys_removed']
  if (canSignUp) return ['mail.can_sign_up']
  if (isLeaving) return ['mail.can_restore', ...(hasInvitation ? (['mail.can_redeem'] as const) : [])]
  if (hasInvitation) return ['mail.can_redeem']
  return topic === 'account_taken_over' && provider !== undefined ? ['mail.identity_linked.lead'] : []
}

function plain(paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`
}

/** Each topic except `account_restored` is also a value of `kind`. */
export type LinkTopic = Exclude<AuthMail['kind'], 'notice' | 'device_code'> | 'account_restored'

/** The code is all that counts. A mail with `device_code` can also lead to a page. */
export type CodeTopic = 'confirmation_code' | 'device_code'

/** They ask for no action. */
export type NoticeTopic = Exclude<MailTopic, LinkTopic | CodeTopic>

interface TopicText {
  readonly subject: TextKey
  /** Each key is a paragraph. */
  readonly lines: readonly TextKey[]
  /** What to do if another person caused the event. */
  readonly notYou: TextKey
  /** Null for notices. */
  readonly button: TextKey | null
}

/** If passwords are off, the texts do not advise the reader to choose a password. */
export function wordsOf(topic: MailTopic, hasPasswords: boolean): TopicText {
  const find = (part: 'lead' | 'more' | 'not_you' | 'button') => {
    const keys = [...(hasPasswords ? [] : [`mail.${topic}.${part}_without_password`]), `mail.${topic}.${part}`]
    return keys.find(isTextKey) ?? null
  }
  const lines = [find('lead'), find('more')].filter((key) => key !== null)
  const notYou = !hasPasswords && advisesNewPassword.has(topic) ? 'mail.look_at_once' : (find('not_you') ?? `mail.${topic}.not_you`)
  return { subject: `mail.${topic}.subject`, lines, notYou, button: find('button') }
}

/** If passwords are off, the mails of these topics need other advice. */
const advisesNewPassword: ReadonlySet<MailTopic> = new Set<MailTopic>([
  'account_restored',
  'new_device',
  'device_trusted',
  'email_change_requested',
  'identity_linked',
  'identity_unlinked',
  'passkey_added',
  'passkey_removed',
  'mfa_disabled',
  'recovery_codes_regenerated',
  'recovery_code_used',
])

type ValidThing = 'link' | 'code' | 'both'

interface Validity {
  readonly issuedAt: Date
  readonly expiresAt: Date
  readonly locale: Locale
  readonly thing: ValidThing
}

/** `This link is valid for 24 hours, until March 2, 2026 at 12:00 PM (UTC).` */
function validityOf(texts: PhraseBook, { issuedAt, expiresAt, locale, thing }: Validity): string {
  const minutes = Math.max(1, Math.round((expiresAt.getTime() - issuedAt.getTime()) / 60_000))
  const instant = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(expiresAt)
  const sentence = texts.say(locale, `mail.valid.${thing}`, { duration: inWords(minutes, locale), instant })
  return sentence.replace(/[\u00a0\u202f]/g, ' ') // some mail programs show the locale's narrow spaces as boxes
}

/** The largest unit that divides it: 3 days, 2 hours, 90 minutes. Exception: one day is 24 hours. */
function inWords(minutes: number, locale: Locale): string {
  const [amount, unit] =
    minutes % 1_440 === 0 && minutes > 1_440 ? [minutes / 1_440, 'day'] : minutes % 60 === 0 ? [minutes / 60, 'hour'] : [minutes, 'minute']
  return new Intl.NumberFormat(locale, { style: 'unit', unit: String(unit), unitDisplay: 'long' }).format(Number(amount))
}

/** With these lines, readers can tell an attacker's login from their own login. */
function loginLines(texts: PhraseBook, { at, browser, ip }: NonNullable<TemplateMail['login']>, locale: Locale): string[] {
  return [
    texts.say(locale, 'mail.login.time', { time: instantInWords(at, locale) }),
    ...(browser === null ? [] : [texts.say(locale, 'mail.login.browser', { browser })]),
    ...(ip === null ? [] : [texts.say(locale, 'mail.login.ip', { ip })]),
  ]
}

/** With this line, readers can tell an attacker's sign-up from their own sign-up. */
function signupLine(texts: PhraseBook, { at, browser }: NonNullable<TemplateMail['signup']>, locale: Locale): string {
  const time = instantInWords(at, locale)
  return browser === null ? texts.say(locale, 'mail.signed_up', { time }) : texts.say(locale, 'mail.signed_up_with', { time, browser })
}

/** `March 2, 2026 at 12:00 PM UTC`, because the reader's time zone is unknown. */
function instantInWords(at: Date, locale: Locale): string {
  return `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(at)} UTC`
}

/** A name with overrides or isolates of the bidirectional algorithm could reorder the text around it. */
const bidirectional = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Without control characters and line breaks, a text cannot begin another header, line or paragraph. */
const breaking = /[\p{Cc}\u2028\u2029]+/gu

export function oneLine(words: string): string {
  return words.toWellFormed().replace(bidirectional, '').replace(breaking, ' ').trim()
}

/** Null: the cleaned name is empty. */
export function sayableName(name: string): string | null {
  return [...oneLine(name)].slice(0, 120).join('') || null
}

interface HtmlMail {
  locale: Locale
  title: string
  /** Before the link. `after` comes after it. */
  before: readonly string[]
  items?: readonly string[]
  codeLabel?: string
  /** In groups, as the mail shows it. */
  code?: string
  why?: readonly string[]
  link?: { url: string; label: string; hint: string }
  after: readonly string[]
  /** Lets the browser fill in the code. */
  last?: string
}

/** At most 600 px, tables and inline styles, for every mail program. Readable with inverted colours. No external resources. */
function htmlMail({ locale, title, before, items = [], codeLabel, code, why = [], link, after, last }: HtmlMail): string {
  const direction = directionOf(locale)
  return html`<!doctype html>
<html lang="${locale}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${title}</title>
${darkColours}
</head>
<body class="page" style="margin:0;padding:0;background-color:#f4f4f5;-webkit-text-size-adjust:100%">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" style="background-color:#f4f4f5">
<tr><td align="center" style="padding:32px 16px">
<table role="presentation" class="card" width="600" cellpadding="0" cellspacing="0" border="0" style="width:100%;max-width:600px;background-color:#ffffff;border-radius:8px">
<tr><td class="words" style="padding:32px 32px 16px;font-family:${fonts};font-size:16px;line-height:24px;color:#27272a;text-align:${direction === 'rtl' ? 'right' : 'left'}">
<h1 style="margin:0 0 24px;font-size:22px;line-height:30px;font-weight:bold">${title}</h1>
${before.map(paragraph)}${items.length > 0 ? itemList(items) : null}${codeLabel === undefined ? null : paragraph(codeLabel)}${code === undefined ? null : codeBlock(code)}${why.map(paragraph)}${link ? linkBlock(link) : null}${after.map(paragraph)}${last === undefined ? null : paragraph(last)}</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`.markup
}

const fonts = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"

/** These rules cannot be inline. A program that drops them shows the light colours. */
const darkColours = html`<style>
@media (prefers-color-scheme: dark) {
.page { background-color: #18181b !important; }
.card { background-color: #27272a !important; }
.words { color: #f4f4f5 !important; }
.link { color: #93c5fd !important; }
}
</style>`

function paragraph(words: string): Html {
  return html`<p style="margin:0 0 16px">${words}</p>
`
}

function itemList(items: readonly string[]): Html {
  return html`<ul style="margin:0 0 16px;padding:0 24px">
${items.map((item) => html`<li style="margin:0 0 4px">${item}</li>`)}
</ul>
`
}

/** In two groups, so that a screen reader reads each group. */
function codeBlock(code: string): Html {
  return html`<p style="margin:0 0 24px;font-size:28px;line-height:36px;font-weight:bold;font-variant-numeric:tabular-nums">${code}</p>
`
}

function linkBlock({ url, label, hint }: NonNullable<HtmlMail['link']>): Html {
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:24px 0">
<tr><td bgcolor="#1d4ed8" style="background-color:#1d4ed8;border-radius:6px">
<a href="${url}" style="display:inline-block;padding:12px 24px;font-family:${fonts};font-size:16px;line-height:24px;font-weight:bold;color:#ffffff;text-decoration:none">${label}</a>
</td></tr>
</table>
<p style="margin:0 0 4px;font-size:14px;line-height:20px">${hint}</p>
<p style="margin:0 0 24px;font-size:14px;line-height:20px;word-break:break-all"><a class="link" href="${url}" style="color:#1d4ed8">${url}</a></p>
`
}
