import type { Locale } from '../http/locale'
import { describeError, type Logger } from '../logger'
import type { AuthMail, MailTemplates, MailText, MailTopic, TemplateMail } from '../mailer'
import { composeMail } from './compose'
import { oneLine, sayableName } from './one-line'
import { topics } from './topics'

export interface MailContent {
  topic: MailTopic
  to: string
  name: string | null
  /** Whether the mail says the name: words of whoever signed up, until the address is proven. */
  saysName: boolean
  locale: Locale
  /** In the topics that carry one. */
  link?: { url: string; issuedAt: Date; expiresAt: Date }
  /** The registration key, in the topics about identities. */
  provider?: string
  /** What was removed, or what is left: one text each. */
  items?: readonly string[]
  /** A code confirmed the change, so no link undoes it. */
  isFinal?: boolean
  /** A recovery code confirmed the change. */
  usedRecoveryCode?: boolean
  /** The signup that an activation belongs to. */
  signup?: TemplateMail['signup']
}

interface Writer {
  readonly templates: { readonly mails?: MailTemplates | undefined }
  readonly logger: Logger
}

/** One mail by the host's template, or by ours where there is none or it fails: a mail is never lost to its wording. */
export function writeMail({ templates, logger }: Writer, content: MailContent): AuthMail {
  const { topic, to, locale, link, provider, items, isFinal, usedRecoveryCode, signup } = content
  const name = content.name === null ? null : sayableName(content.name)
  const url = link?.url ?? null
  const expiresAt = link?.expiresAt ?? null
  const about = {
    ...(provider !== undefined && { provider }),
    ...(items && { items }),
    ...(isFinal && { isFinal }),
    ...(usedRecoveryCode && { usedRecoveryCode }),
    ...(signup && { signup }),
  }
  const mail = { topic, name: content.saysName ? name : null, url, expiresAt, locale, ...about }
  const { subject, text, html } = byHost(templates.mails, mail, logger) ?? composeMail({ ...mail, issuedAt: link?.issuedAt ?? null })
  return { kind: kindOf(topic, url), to, name, url, expiresAt, locale, subject: oneLine(subject), text, html }
}

function kindOf(topic: MailTopic, url: string | null): AuthMail['kind'] {
  if (topic === 'account_restored') return url === null ? 'notice' : 'password_reset' // what its link is for
  return 'button' in topics[topic] ? (topic as AuthMail['kind']) : 'notice' // a topic with a button is a kind of its own
}

/** Null: there is no template of the host's, or it failed. */
function byHost(mails: MailTemplates | undefined, mail: TemplateMail, logger: Logger): MailText | null {
  const template = mails?.[mail.topic]
  if (!template) return null
  try {
    const given: unknown = template({ ...mail })
    Promise.resolve(given).catch(() => {}) // an async one is refused below; its rejection must not end the process
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
  const { subject, text, html } = Object(written) as Record<string, unknown> // whatever came back
  return typeof subject === 'string' && typeof text === 'string' && typeof html === 'string' ? { subject, text, html } : null
}
