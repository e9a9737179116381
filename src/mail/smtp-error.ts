import { withOwnMessage } from '../core/logger'
import type { MailRefusal } from '../core/mailer'

/**
 * The error of a mail that was not sent, or may not have been sent. The error leaves out the server's text, because that text contains
 * addresses.
 */
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

/**
 * `later`: the mail was not sent, and another attempt can succeed. `refused`: the mail was not sent, and another attempt cannot succeed.
 * `unknown`: the server may have accepted the mail.
 */
type Verdict = 'later' | 'refused' | 'unknown'

const sentences: Record<Verdict, string> = {
  later: 'The mail was not sent: the server could not be reached, or refused the mail for now.',
  refused: 'The mail was not sent: the server refused it.',
  unknown: 'It is unknown whether the mail was sent: the connection was lost, or the answer of the server could not be read.',
}

export function smtpRefusal(code: string): SmtpError {
  return new SmtpError('refused', code)
}

/** Turns an error of nodemailer into an error that says whether to try again. */
export function smtpErrorOf(error: unknown): SmtpError {
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
 * Returns the verdict on an error. If the server replied, the reply decides (RFC 5321 section 4.2.1): 4yz is temporary and 5yz is
 * permanent. With these replies the server did not accept the mail. Without a reply, an error before the transmission of the mail means
 * that the mail was not sent. After any other error the server may have accepted the mail.
 */
function verdictOn({ code, originalCode, responseCode, command, syscall, timeoutType, message }: Facts): Verdict {
  if (typeof responseCode === 'number' && responseCode >= 400) return responseCode < 500 ? 'later' : 'refused'
  if (isAmong(beforeMail, code) || isAmong(beforeMail, timeoutType) || isAmong(beforeMail, syscall)) return 'later'
  if (isAmong(beforeMail, originalCode) || isAmong(beforeMail, message) || (command === 'API' && code === 'ECONNECTION')) return 'later'
  if (isAmong(ownRefusals, code) || isCertificateFault(originalCode)) return 'refused'
  return 'unknown'
}

/** Errors that happen before the transmission: DNS, connection, greeting, TLS, or a missing OAuth token. */
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

/** Codes for mails that nodemailer refused to send, and for servers that lack a feature that we require. */
const ownRefusals = ['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG', 'EREQUIRETLS', 'EFILEACCESS', 'EURLACCESS']

function isAmong(names: readonly string[], value: unknown): boolean {
  return typeof value === 'string' && names.includes(value)
}

/**
 * Returns true for the codes of OpenSSL and Node for an untrusted certificate. These errors occur in the handshake, before the
 * transmission.
 */
function isCertificateFault(originalCode: unknown): boolean {
  return typeof originalCode === 'string' && /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$/.test(originalCode)
}
