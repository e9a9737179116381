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
  /** True if the mail may contain the name. Before the address is verified, the name may be an attacker's text. */
  saysName: boolean
  locale: Locale
  /** The link of the mail, if the topic has a link. `url` is null if the mail has only a code. */
  link?: { url: string | null; issuedAt: Date; expiresAt: Date }
  /** Eight digits, and the host name of the site that asks for the code. If the host name is unknown, `host` is null. */
  code?: { digits: string; host: string | null }
  /** For the topic `no_account`: true if the mail says that the person can sign up. */
  canSignUp?: boolean
  /** The page where the reader of `no_account` or `address_taken` goes on. */
  pageUrl?: string | null
  /** The name of the identity provider in the option `providers`, for the topics about identities. */
  provider?: string
  /** A list of what was removed or what is left, with one text for each item. */
  items?: readonly string[]
  /** True if an undo link cannot revert the change. */
  isFinal?: boolean
  /** True if a recovery code confirmed the change. */
  usedRecoveryCode?: boolean
  /** True if the change also removed the passkeys. */
  removedPasskeys?: boolean
  /** The sign-up that the activation link belongs to. */
  signup?: TemplateMail['signup']
  /** The login that the topic `new_device` reports. */
  login?: TemplateMail['login']
}

interface Writer {
  readonly settings?: Pick<Settings, 'localAccountsEnabled' | 'passwordLogin'>
  readonly texts: PhraseBook
  readonly templates: { readonly mails?: MailTemplates | undefined }
  readonly logger: Logger
}

/**
 * Returns a mail by the host's template. If the host has no template, or the template fails, returns the built-in mail. A faulty template
 * therefore never prevents a mail.
 */
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

/** Returns null if the host has no template, or if the template failed. */
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
