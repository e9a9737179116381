import { setTimeout as delay } from 'node:timers/promises'
import { hasPasswords, type Settings } from '../core/config/every-setting'
import type { AuthEventPayloads, EventEmitter } from '../core/events'
import { describeError, type Logger, logCounted } from '../core/logger'
import type { AuthMail, Mailer, MailRefusal, MailTemplates, MailText, MailTopic, TemplateMail } from '../core/mailer'
import type { PhraseBook } from '../core/texts/phrase-book'
import { seeTroubleshooting } from '../core/troubleshooting'
import type { Locale } from '../http/locale'
import { createBoundedQueue } from '../passwords/hash-queue'
import { composeMail, oneLine, sayableName, wordsOf } from './compose'

/** After the response, so that a client cannot notice a slow or failing mailer. */
export interface MailQueue {
  /** Never throws. Event and log have `userId` (null: no account), never the address. If `mayGo` returns false, drops the mail. */
  post(mail: AuthMail, userId: string | null, mayGo?: () => Promise<boolean>): void
  /** For a mail that must be sent if a change happens. Null: too many. A separate limit: other mails cannot block a change. */
  reserve(): MailPlace | null
  /** Ends every pause: at most two more attempts. Resolves when the mails in progress now were sent or given up. */
  finish(): Promise<unknown>
}

/** The caller sends the mail or releases the reservation. */
interface MailPlace {
  /** Never throws. Does nothing if the reservation was already used or released. */
  post(mail: AuthMail, userId: string | null): void
  /** Does nothing if the reservation was already used or released. */
  release(): void
}

type Failure = AuthEventPayloads['mail.failed']['reason']

/** Bounds the memory while a mailer does not respond. */
const mostAtOnce = 1_000

/** Open reservations, and those with a mail in progress. */
const mostPlaces = 1_000

/** Separate too: an outage of the mail server must block neither new mails nor changes of accounts. */
const mostAgain = 5_000

/** In milliseconds. A late attempt is not repeated, because the mailer may have sent the mail. */
const deadlineMs = 120_000

/**
 * 1 s, then twice the last pause, at most five minutes, one hour in all. There is another attempt only if the mailer's error has neither
 * `retryable: false` nor `outcome: 'unknown'`.
 */
const pausesMs = growingPauses({ longest: 300_000, total: 3_600_000 })

function growingPauses({ longest, total }: { longest: number; total: number }): number[] {
  const pauses: number[] = []
  for (let left = total, pause = 1_000; left > 0; left -= pause, pause = Math.min(pause * 2, longest, left)) pauses.push(pause)
  return pauses
}

interface Delivery {
  readonly ended: Promise<void>
  /** Ends the pause, if there is one. A second or later attempt that begins after that is the last one. */
  readonly hurry: AbortController
}

/** @param concurrency how many mails the mailer sends at the same time */
export function createMailQueue({
  mailer,
  events,
  logger,
  concurrency,
}: {
  mailer: Mailer
  events: EventEmitter
  logger: Logger
  concurrency: number
}): MailQueue {
  const underWay = new Set<Delivery>()
  const kept = new Set<MailPlace>()
  const inPlaces = new Set<Delivery>()
  const again = new Set<Delivery>()
  const inTurn = createBoundedQueue({ concurrency, queue: mostAtOnce + mostPlaces + mostAgain })

  function giveUp({ kind }: AuthMail, userId: string | null, reason: Failure, error: unknown = null): void {
    logger.error(
      { kind, userId, reason, error: error === null ? null : describeError(error) },
      `doorward: a mail was not sent. ${seeTroubleshooting('a-mail-does-not-arrive')}`,
    )
    events.emit('mail.failed', { kind, userId, reason })
  }

  function tellOutage({ kind }: AuthMail, error: unknown): void {
    const message = `doorward: a mail could not be sent yet. doorward tries again for one hour. ${seeTroubleshooting('a-mail-does-not-arrive')}`
    logCounted(logger, { level: 'warn', kind: 'mail', fields: { kind, error: describeError(error) }, message })
  }

  async function deliver(mail: AuthMail, userId: string | null, signal: AbortSignal, waitAgain: () => boolean): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const { isLast, outcome } = await inTurn(async () => ({
        isLast: attempt > 0 && signal.aborted,
        outcome: await sendInTime(mailer, mail),
      }))
      if (outcome === 'sent') return
      if (outcome === 'late') return giveUp(mail, userId, 'late')
      const { outcome: known, retryable } = refusalOf(outcome.error)
      if (known === 'unknown') return giveUp(mail, userId, 'unknown', outcome.error)
      const milliseconds = pausesMs[attempt]
      if (retryable === false || milliseconds === undefined || isLast) return giveUp(mail, userId, 'refused', outcome.error)
      if (attempt === 0) tellOutage(mail, outcome.error)
      if (attempt === 0 && !waitAgain()) return giveUp(mail, userId, 'too_many', outcome.error)
      // The timer does not keep the process alive. A process that stops calls `drain`, which ends the pause.
      await delay(milliseconds, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  function begin(mail: AuthMail, userId: string | null, mayGo: (() => Promise<boolean>) | undefined, among: Set<Delivery>): void {
    const hurry = new AbortController()
    const delivery: Delivery = { ended: deliverIfItMay(Object.freeze({ ...mail })).finally(leave), hurry }
    among.add(delivery)

    async function deliverIfItMay(mail: AuthMail): Promise<void> {
      try {
        if (mayGo && !(await mayGo())) return
      } catch (error) {
        return giveUp(mail, userId, 'refused', error)
      }
      // A mailer may run synchronous code before its first await. That code must not delay the response.
      await delay(0)
      await deliver(mail, userId, hurry.signal, waitAgain)
    }

    function waitAgain(): boolean {
      if (again.size >= mostAgain) return false
      among.delete(delivery)
      again.add(delivery)
      return true
    }

    function leave(): void {
      among.delete(delivery)
      again.delete(delivery)
    }
  }

  return {
    post(mail, userId, mayGo) {
      if (underWay.size >= mostAtOnce) return giveUp(mail, userId, 'too_many')
      begin(mail, userId, mayGo, underWay)
    },
    reserve() {
      if (kept.size + inPlaces.size >= mostPlaces) return null
      const place: MailPlace = {
        post(mail, userId) {
          if (kept.delete(place)) begin(mail, userId, undefined, inPlaces)
        },
        release: () => void kept.delete(place),
      }
      kept.add(place)
      return place
    },
    async finish() {
      const deliveries = [...underWay, ...inPlaces, ...again]
      for (const { hurry } of deliveries) hurry.abort()
      await Promise.all(deliveries.map(({ ended }) => ended))
    },
  }
}

/** The mailer may throw any value, even a value with a getter that throws. */
function refusalOf(error: unknown): MailRefusal {
  try {
    const { retryable, outcome } = Object(error) as MailRefusal // any value; the code only compares its members
    return { retryable: retryable !== false, ...(outcome === 'unknown' && { outcome }) }
  } catch {
    return {}
  }
}

async function sendInTime(mailer: Mailer, mail: AuthMail): Promise<'sent' | 'late' | { error: unknown }> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), deadlineMs)
    timer.unref()
  })
  const sent = Promise.resolve()
    .then(() => mailer.send(mail))
    .then(
      () => 'sent' as const,
      (error: unknown) => ({ error }),
    )
  try {
    return await Promise.race([sent, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Beside a link, which has its own end. */
export interface LinkCode {
  readonly digits: string
  /** Of the site that asks for the code. Null: unknown. */
  readonly host: string | null
  readonly expiresAt: Date
  /** When and with which browser the mail was requested. Null: unknown browser. */
  readonly asked: { readonly at: Date; readonly browser: string | null }
}

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
  code?: { digits: string; host: string | null } | LinkCode
  /** For `no_account`: the person can sign up. */
  canSignUp?: boolean
  /** For `address_taken`: the sign-up had an invitation. */
  hasInvitation?: boolean
  isLeaving?: boolean
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
  const {
    topic,
    to,
    locale,
    link,
    provider,
    items,
    isFinal,
    usedRecoveryCode,
    removedPasskeys,
    signup,
    login,
    code,
    canSignUp,
    hasInvitation,
    isLeaving,
  } = content
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
    ...(signup && { signup: { at: signup.at, browser: signup.browser } }),
    ...(login && { login }),
    ...(code && { code: code.digits }),
    ...(code && 'asked' in code && { codeExpiresAt: code.expiresAt, asked: { ...code.asked, host: code.host } }),
    ...(canSignUp !== undefined && { canSignUp }),
    ...(hasInvitation && { hasInvitation }),
    ...(isLeaving && { isLeaving }),
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
