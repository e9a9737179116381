import { MfaNotEnrolledError, MfaTokenInvalidError } from '../core/errors'
import { card, type FormState, field, form, type Html, html, or, type Part, problem } from '../http/html/document'
import { passkeyForm, passkeyOfForm } from '../http/html/passkey-form'
import type { Reader } from '../http/html/reader'
import { isTrustChecked, trustCheckbox } from '../http/html/trust-checkbox'
import type { Route } from '../http/routes'
import { passkeyStepOptions } from '../passkeys/step-route'
import { clearChallenge, type KeptChallenge, leaveNotice, readChallengeCookie } from '../sessions/cookies'
import { afterLogin } from './after-login'
import { requireFields } from './form-fault'
import { Elsewhere, type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { isOurSignIn, signInAddress } from './signed-in'

export function challengeRoutes(site: PageSite): Route[] {
  if (!site.ctx.settings.mfaEnabled) return []
  return pageRouteSets(site, {
    path: '/mfa',
    summary: 'The page that asks for the second factor',
    sentences: { PASSKEY_REJECTED: 'passkey.rejected', MFA_CODE_INVALID: 'mfa.wrong', MFA_THROTTLED: 'mfa.throttled' },
    show: async (visit, state) => {
      const challenge = requireChallenge(visit)
      const passkey = await passkeyOf(visit, challenge, state)
      const signInAgain = signInAddress(visit.ctx, visit.reader, challenge.returnTo)
      return {
        page: 'mfa',
        title: visit.reader.text('mfa.title'),
        body: challengePage(visit.reader, state, { passkey, signInAgain, trustDays: visit.ctx.settings.trustedDeviceDays }),
      }
    },
    post: finish,
  })
}

async function finish(visit: Visit, fields: Fields): Promise<GoOn> {
  const { mfaToken, returnTo, landing } = requireChallenge(visit)
  const isByPasskey = fields['credential'] !== undefined
  if (!isByPasskey) requireFields(fields, 'code')
  try {
    const proof = isByPasskey ? passkeyOfForm(fields) : { code: fields['code'] ?? '' }
    const login = await visit.ask.verifyMfa({ mfaToken, ...proof, trustDevice: isTrustChecked(fields['trust_device']) })
    clearChallenge(visit.ctx, visit.res)
    return afterLogin({ ...visit, returnTo }, login, landing)
  } catch (error) {
    if (!(error instanceof MfaTokenInvalidError)) throw error
    clearChallenge(visit.ctx, visit.res)
    if (isOurSignIn(visit.ctx)) leaveNotice(visit.ctx, visit.res, 'challenge_over')
    throw new Elsewhere({ to: signInAddress(visit.ctx, visit.reader, returnTo) })
  }
}

/** Null if the account has no passkey, or if the challenge has expired, which the code form reports. */
async function passkeyOf({ ctx, reader }: Visit, { mfaToken }: KeptChallenge, state: FormState): Promise<Html | null> {
  if (!ctx.settings.passkeysEnabled) return null
  try {
    const begun = await passkeyStepOptions(ctx, mfaToken)
    const fields = [trustCheckbox(reader, state, ctx.settings.trustedDeviceDays, 'trust_device_by_passkey')]
    return passkeyForm(reader, { ...begun, action: reader.href('/mfa'), fields, button: reader.text('passkey.sign_in'), look: 'second' })
  } catch (error) {
    if (error instanceof MfaNotEnrolledError || error instanceof MfaTokenInvalidError) return null
    throw error
  }
}

/** @throws Elsewhere if the browser has no challenge */
function requireChallenge({ ctx, req, reader }: Visit): KeptChallenge {
  const challenge = readChallengeCookie(ctx, req)
  if (challenge === null) throw new Elsewhere({ to: signInAddress(ctx, reader) })
  return challenge
}

interface ChallengeParts {
  readonly passkey: Part
  readonly signInAgain: string
  readonly trustDays: number
}

function challengePage(reader: Reader, state: FormState, { passkey, signInAgain, trustDays }: ChallengeParts): Html {
  return card(
    html`<h1>${reader.text('mfa.title')}</h1>
<p class="lead">${reader.text('mfa.lead')}</p>
`,
    problem(state),
    form({
      action: reader.href('/mfa'),
      fields: [
        field(reader, state, {
          name: 'code',
          label: reader.text('field.code'),
          autocomplete: 'one-time-code',
          isCode: true,
          isFirst: true,
        }),
        trustCheckbox(reader, state, trustDays),
      ],
      button: reader.text('mfa.button'),
    }),
    passkey && html`${or(reader)}${passkey}`,
    html`<p class="below"><a href="${signInAgain}">${reader.text('mfa.again')}</a></p>
`,
  )
}
