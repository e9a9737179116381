import { leadsSomewhere } from '../../../accounts/email-links/email-link'
import { sentenceOf } from '../../../core/error-sentence'
import { answerOf, type Check, error, isLoopback, type Patient, type Result, warning } from './check'

export const mailChecks: readonly Check[] = [
  { name: 'mail-handshake', examine: handshake },
  { name: 'mail-links-in-bodies', examine: linksInBodies },
  { name: 'mail-undo', examine: undoLinks },
]

async function handshake({ options: { mailer } }: Patient): Promise<Result> {
  if (!mailer) return { skipped: 'There is no mailer.' }
  if (typeof mailer.verify !== 'function') return { skipped: 'The mailer has no verify().' }
  try {
    await answerOf(Promise.resolve(mailer.verify()))
    return null
  } catch (problem) {
    return error(
      `The check of the mail server failed: ${sentenceOf(problem)}`,
      'No link to activate an account or to set a new password is delivered.',
      'Check host, port, user and password of the mailer, and that this machine can reach the server.',
    )
  }
}

function linksInBodies({ ctx: { settings }, options: { mailer }, isProduction }: Patient): Result {
  if (!settings.localAccountsEnabled || (mailer && !settings.returnTokenInResponse)) return null
  if (!isProduction && isLoopback(settings.publicUrl)) return null
  const report = isProduction ? error : warning
  return report(
    'Links to activate an account and to set a password are in response bodies (no mailer, or returnTokenInResponse).',
    'Any client can request the link of an address and take its account over.',
    'Pass a mailer, such as smtpMailer({ … }), and remove returnTokenInResponse.',
  )
}

function undoLinks({ ctx: { settings }, options: { mailer } }: Patient): Result {
  if (!mailer || settings.undoSeconds === 0 || leadsSomewhere(settings, 'UNDO')) return null
  return warning(
    'Notices have no undo link, because its address is unknown.',
    'If an attacker changes an account, the owner cannot undo the change with the mail about it.',
    'Set publicUrl (AUTH_PUBLIC_URL) or undoUrlTemplate (AUTH_UNDO_URL_TEMPLATE); undoSeconds: 0 turns undo links off.',
  )
}
