import { nearestName } from '../core/config/settings'
import { ConfigurationError } from '../core/errors'
import { withOwnMessage } from '../core/logger'
import type { AuthMail, Mailer, MailRefusal } from '../core/mailer'
import { seeTroubleshooting } from '../core/troubleshooting'
import { normalizeEmail } from '../http/email-address'
import { oneLine } from './compose'
import { type Transporter, transporterOf } from './smtp-transport'

/** Set `transport`, or `url`, or `host` with `port`, `secure` and `auth`. */
export interface SmtpMailerOptions {
  /** The sender: `no-reply@app.example`, or `App <no-reply@app.example>`. */
  from: string
  /**
   * A transporter of `nodemailer.createTransport` of any version, an SMTP URL, or nodemailer's SMTP options. A transporter keeps its own
   * settings, and the mailer never closes the transporter. `transport` excludes `url`, `host`, `port`, `secure` and `auth`.
   */
  transport?: string | object
  /** The server: `smtp://user:password@host:587` or `smtps://…`. */
  url?: string
  /** Host name of the server. */
  host?: string
  /** Default 587, or 465 if `secure` is true. */
  port?: number
  /** True: TLS from the first byte. False (default): STARTTLS, which the mailer requires unless the host is this machine. */
  secure?: boolean
  /** Credentials for the server, for example `{ user, pass }`. */
  auth?: object
}

/**
 * Returns a `Mailer` that sends by SMTP with nodemailer (an optional peer dependency). Every mail has one recipient and is marked as
 * automatic (RFC 3834). TLS is required unless the host is this machine. Every attempt has a time limit. A transporter that you pass keeps
 * its own rules for TLS and time limits.
 *
 * doorward tries again after a temporary refusal (4yz), and if the server cannot be reached (RFC 5321 section 4.2.1). doorward does not try
 * again after a permanent refusal (5yz). It also does not try again if the connection was lost when the server may already have accepted
 * the mail.
 * @throws ConfigurationError for a missing package, a missing or unusable option, and a pool that repeats mails
 */
export function smtpMailer(options: SmtpMailerOptions): Mailer {
  refuseUnknown(options)
  const from = senderOf(options.from)
  const transporter = transporterOf(transportOf(options))
  return {
    send: (mail) => send(transporter, from, mail),
    async verify() {
      await transporter.verify?.().catch((error: unknown) => {
        throw smtpErrorOf(error)
      })
    },
  }
}

const ofServer = ['url', 'host', 'port', 'secure', 'auth'] as const

function transportOf({ transport, ...options }: SmtpMailerOptions): unknown {
  const given = ofServer.filter((name) => options[name] !== undefined)
  if (transport === undefined) return Object.fromEntries(given.map((name) => [name, options[name]]))
  if (given.length === 0) return transport
  throw new ConfigurationError(`smtpMailer: transport excludes ${given.join(' and ')}; pass one or the other.`)
}

interface Address {
  name: string
  address: string
}

async function send(transporter: Transporter, from: Address, mail: AuthMail): Promise<void> {
  const message = messageOf(from, mail)
  const result = await transporter.sendMail(message).catch((error: unknown) => {
    throw smtpErrorOf(error)
  })
  const { rejected } = Object(result) as { rejected?: unknown } // nodemailer's transports set `rejected`
  if (Array.isArray(rejected) && rejected.length > 0) throw smtpRefusal('EENVELOPE')
}

/** A name must not add a recipient or a header. Nobody verified the recipient's name, so it is left out. */
function messageOf(from: Address, { to, subject, text, html }: AuthMail): object {
  if (!oneAddress.test(to)) throw smtpRefusal('EENVELOPE')
  return {
    from,
    to: { name: '', address: to },
    envelope: { from: from.address, to: [to] },
    subject: oneLine(subject),
    text,
    html,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/** Looser than our rule, because a host's table can contain older addresses. Never accepts two addresses or a header. */
const oneAddress = /^[^\s\p{Cc}@<>()[\]\\,;:"]+@[^\s\p{Cc}@<>()[\]\\,;:"]+$/u

function senderOf(from: unknown): Address {
  const [, quoted, bare, inBrackets, alone] =
    typeof from === 'string' ? (/^(?:(?:"([^"\\<>]*)"|([^"\\<>]*?)) *<([^<>]*)>|([^<>"]*))$/.exec(from.trim()) ?? []) : []
  const address = (inBrackets ?? alone)?.trim()
  const name = quoted ?? bare ?? ''
  if (address === undefined || normalizeEmail(address) === null || oneLine(name) !== name) {
    throw new ConfigurationError("smtpMailer: from must be one address, such as 'no-reply@app.example' or 'App <no-reply@app.example>'.")
  }
  return { name, address }
}

function refuseUnknown(options: unknown): void {
  if (typeof options !== 'object' || options === null)
    throw new ConfigurationError('smtpMailer() needs options: { from, transport } or { from, url }.')
  const known = ['from', 'transport', ...ofServer]
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw new ConfigurationError(
    `smtpMailer: unknown option ${JSON.stringify(unknown.slice(0, 64))}; the nearest known one is ${nearestName(unknown, known)}. ${seeTroubleshooting('unknown-names')}`,
  )
}

/** The mail was not sent, or may not have been. Leaves out the server's text, because it contains addresses. */
class SmtpError extends Error implements MailRefusal {
  override readonly name = 'SmtpError'
  /** nodemailer's code and the server's reply, for example `EAUTH_535`. */
  readonly code: string
  readonly retryable: boolean
  readonly outcome?: 'unknown'

  constructor(verdict: Verdict, code: string, options?: ErrorOptions) {
    super(sentences[verdict], options)
    this.code = code
    this.retryable = verdict === 'later'
    if (verdict === 'unknown') this.outcome = 'unknown'
    withOwnMessage(this)
  }
}

/** `later` and `refused`: not sent, and another attempt can or cannot succeed. `unknown`: the server may have accepted the mail. */
type Verdict = 'later' | 'refused' | 'unknown'

const sentences: Record<Verdict, string> = {
  later: 'The mail was not sent: the server could not be reached, or refused the mail for now.',
  refused: 'The mail was not sent: the server refused it.',
  unknown: 'It is unknown whether the mail was sent: the connection was lost, or the answer of the server could not be read.',
}

function smtpRefusal(code: string): SmtpError {
  return new SmtpError('refused', code)
}

function smtpErrorOf(error: unknown): SmtpError {
  const facts = Object(error) as Facts // any value may be thrown; the code only compares its members
  const code = [facts.code, facts.responseCode].filter((part) => typeof part === 'string' || typeof part === 'number').join('_')
  return new SmtpError(verdictOn(facts), code, { cause: error })
}

interface Facts {
  code?: unknown
  /** The system's own error code. Present if `code` is nodemailer's code. */
  originalCode?: unknown
  responseCode?: unknown
  command?: unknown
  syscall?: unknown
  timeoutType?: unknown
  /** nodemailer before 10 distinguishes its timeouts only by this message. */
  message?: unknown
}

/**
 * A reply decides (RFC 5321 section 4.2.1): 4yz is temporary and 5yz is permanent, and the mail is not accepted. Without a reply, an error
 * before the transmission means that the mail was not sent. After any other error the server may have it.
 */
function verdictOn({ code, originalCode, responseCode, command, syscall, timeoutType, message }: Facts): Verdict {
  if (typeof responseCode === 'number' && responseCode >= 400) return responseCode < 500 ? 'later' : 'refused'
  if (isAmong(beforeMail, code) || isAmong(beforeMail, timeoutType) || isAmong(beforeMail, syscall)) return 'later'
  if (isAmong(beforeMail, originalCode) || isAmong(beforeMail, message) || (command === 'API' && code === 'ECONNECTION')) return 'later'
  if (isAmong(ownRefusals, code) || isCertificateFault(originalCode)) return 'refused'
  return 'unknown'
}

/** Before the transmission: DNS, connection, greeting, TLS, or a missing OAuth token. */
const beforeMail = [
  'EDNS',
  'ETLS',
  'EPROXY',
  'EOAUTH2',
  'CONNECT_TIMEOUT',
  'GREETING_TIMEOUT',
  'UPGRADE_TIMEOUT',
  'connect',
  'getaddrinfo',
  'ECONNREFUSED',
  'Connection timeout',
  'Greeting never received',
]

/** nodemailer refused to send the mail, or the server lacks a feature that we require. */
const ownRefusals = ['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG', 'EREQUIRETLS', 'EFILEACCESS', 'EURLACCESS']

function isAmong(names: readonly string[], value: unknown): boolean {
  return typeof value === 'string' && names.includes(value)
}

/** Codes of OpenSSL and Node for an untrusted certificate, in the handshake, before the transmission. */
function isCertificateFault(originalCode: unknown): boolean {
  return typeof originalCode === 'string' && /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/.test(originalCode)
}
