import { withOwnMessage } from '../logger'
import type { MailRefusal } from '../mailer'

/** Why a mail was not handed over, or may not have been; without the server's words, which hold addresses. */
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

/** `later`: nothing was sent, and another attempt may fare better. */
type Verdict = 'later' | 'refused' | 'unknown'

const sentences: Record<Verdict, string> = {
  later: 'The mail was not sent: the server could not be reached, or refused it for now.',
  refused: 'The mail was not sent: it was refused.',
  unknown: 'The mail may or may not have been sent: the connection was lost, or what the server said cannot be told.',
}

export function refused(code: string): SmtpError {
  return new SmtpError('refused', code)
}

/** What nodemailer's error means for another attempt. */
export function smtpErrorOf(error: unknown): SmtpError {
  const facts = Object(error) as Facts // anything may be thrown; each is compared with what it may be
  const code = [facts.code, facts.responseCode].filter((part) => typeof part === 'string' || typeof part === 'number').join('_')
  return new SmtpError(verdictOn(facts), code, { cause: error })
}

interface Facts {
  code?: unknown
  /** The system's own code, where `code` is nodemailer's. */
  originalCode?: unknown
  responseCode?: unknown
  command?: unknown
  syscall?: unknown
  timeoutType?: unknown
  /** What tells one timeout from another before nodemailer 10. */
  message?: unknown
}

/**
 * A reply decides (RFC 5321 section 4.2.1: 4yz is for now, 5yz for good; neither took the mail). Without one, only what can
 * only have happened before the mail was handed over is no delivery; a connection that was lost at any other moment may
 * have been lost after it.
 */
function verdictOn({ code, originalCode, responseCode, command, syscall, timeoutType, message }: Facts): Verdict {
  if (typeof responseCode === 'number' && responseCode >= 400) return responseCode < 500 ? 'later' : 'refused'
  if (isAmong(beforeMail, code) || isAmong(beforeMail, timeoutType) || isAmong(beforeMail, syscall)) return 'later'
  if (isAmong(beforeMail, originalCode) || isAmong(beforeMail, message) || (command === 'API' && code === 'ECONNECTION')) return 'later'
  if (isAmong(ownRefusals, code) || isCertificateFault(originalCode)) return 'refused'
  return 'unknown'
}

/** No name, no connection, no greeting, no TLS; a token to sign in with could not be had. */
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

/** nodemailer itself would not begin, or the server's offer did not do. */
const ownRefusals = ['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG', 'EREQUIRETLS', 'EFILEACCESS', 'EURLACCESS']

function isAmong(names: readonly string[], value: unknown): boolean {
  return typeof value === 'string' && names.includes(value)
}

/** OpenSSL's and Node's names for a certificate nobody should trust: found in the handshake, before the mail. */
function isCertificateFault(originalCode: unknown): boolean {
  return typeof originalCode === 'string' && /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/.test(originalCode)
}
