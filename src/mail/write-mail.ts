import type { Settings } from '../core/config/every-setting'
import { hasPasswords } from '../core/config/every-setting'
import { describeError, type Logger } from '../core/logger'
import type { AuthMail, MailTemplates, MailText, MailTopic, TemplateMail } from '../core/mailer'
import type { PhraseBook } from '../core/texts/phrase-book'
import type { Locale } from '../http/locale'
import { composeMail, oneLine, sayableName, wordsOf } from './compose'

export interface MailContent {
  topic: MailTopic
  to: string
  name: string | null
  /** Before the address is verified, the name may be an attacker's text. */
  saysName: boolean
  locale: Locale
  /** `url` is null if the mail has only a code. */
  link?: { url: string | null; issuedAt: Date; expiresAt: Date }
  /** `digits` are eight. `host` asks for the code; null: unknown. */
  code?: { digits: string; host: string | null }
  /** For `no_account`: the person can sign up. */
  canSignUp?: boolean
  /** Where the reader of `no_account` or `address_taken` goes on. */
  pageUrl?: string | null
  /** The name of the identity provider in the option `providers`. */
  provider?: string
  items?: readonly string[]
  isFinal?: boolean
  usedRecoveryCode?: boolean
  removedPasskeys?: boolean
  signup?: TemplateMail['signup']
  login?: TemplateMail['login']
}

interface Writer {
  readonly settings?: Pick<Settings, 'localAccountsEnabled' | 'passwordLogin'>
  readonly texts: PhraseBook
  readonly templates: { readonly mails?: MailTemplates | undefined }
  readonly logger: Logger
}

/** Without the host's template, or if it fails, returns the built-in mail: a faulty template never prevents a mail. */
export function writeMail({ settings, texts, templates, logger }: Writer, content: MailContent): AuthMail {
  const { topic, to, locale, link, provider, items, isFinal, usedRecoveryCode, removedPasskeys, signup, login, code, canSignUp } = content
  const takesPasswords = settings === undefined || hasPasswords(settings)
  const name = content.name === null ? null : sayableName(content.name)
  const url = link?.url ?? content.pageUrl ?? null
  const expiresAt = link?.expiresAt ?? null
  const about = {
    ...(provider !== undefined && { provider }),
    ...(items && { items }),
    ...(isFinal && { isFinal }),
    ...(usedRecoveryCode && { usedRecoveryCode }),
    ...(removedPasskeys && { removedPasskeys }),
    ...(signup && { signup }),
    ...(login && { login }),
    ...(code && { code: code.digits }),
    ...(canSignUp !== undefined && { canSignUp }),
  }
  const mail = { topic, name: content.saysName ? name : null, url, expiresAt, locale, ...about }
  const { subject, text, html } =
    byHost(templates.mails, mail, logger) ??
    composeMail(texts, { ...mail, issuedAt: link?.issuedAt ?? null, codeHost: code?.host ?? null, hasPasswords: takesPasswords })
  return {
    kind: kindOf(topic, url, takesPasswords),
    to,
    name,
    url,
    ...(code && { code: code.digits }),
    expiresAt,
    locale,
    subject: oneLine(subject),
    text,
    html,
  }
}

function kindOf(topic: MailTopic, url: string | null, takesPasswords: boolean): AuthMail['kind'] {
  // The kind depends on what the link does.
  if (topic === 'account_restored' && url !== null) return takesPasswords ? 'password_reset' : 'email_login'
  if (topic === 'account_restored') return 'notice'
  if (topic === 'confirmation_code') return 'email_login'
  return wordsOf(topic, takesPasswords).button !== null ? (topic as AuthMail['kind']) : 'notice' // a topic with a button is also a kind
}

function byHost(mails: MailTemplates | undefined, mail: TemplateMail, logger: Logger): MailText | null {
  const template = mails?.[mail.topic]
  if (!template) return null
  try {
    const given: unknown = template({ ...mail })
    Promise.resolve(given).catch(() => {}) // an async template is rejected below, and its rejection must not end the process
    const written = readMailText(given)
    if (written) return written
    logger.error({ topic: mail.topic, error: null }, failed)
  } catch (error) {
    logger.error({ topic: mail.topic, error: describeError(error) }, failed)
  }
  return null
}

const failed = 'doorward: a mail template failed or returned no subject, text and html; the built-in mail is sent'

function readMailText(written: unknown): MailText | null {
  const { subject, text, html } = Object(written) as Record<string, unknown> // any value
  return typeof subject === 'string' && typeof text === 'string' && typeof html === 'string' ? { subject, text, html } : null
}
