import type { AuthContext } from '../../context'
import type { TextKey } from '../../core/texts/texts'
import { hidden } from '../../http/html/elements'
import { emptyForm } from '../../http/html/form-state'
import { listPasskeys } from '../../passkeys/manage'
import { forAuthenticatorApp } from '../../second-factor/enroll'
import { isPendingSecret } from '../../second-factor/pending-factor'
import { takesPassword } from '../../sessions/reauthentication/methods'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { FormFault, requireFields } from '../form-fault'
import { Elsewhere } from '../page-lines'
import type { Fields } from '../page-site'
import { openEnrolment, type PageEnrolment, sealEnrolment } from './sealed-enrolment'
import { beginFactorPage, enrolmentPage, newCodesPage, recoveryCodesPage, securityPage, turnOffPage } from './security-page'

const path = '/account/security'
const sentences: Readonly<Record<string, TextKey>> = {
  EMAIL_NOT_VERIFIED: 'account.verify_first',
  UNAUTHORIZED: 'password.wrong',
  MFA_CODE_INVALID: 'mfa.wrong',
}
const faultFields = { MFA_CODE_INVALID: 'code' }
const isThere = ({ settings }: AuthContext) => settings.mfaEnabled

/** Shows the second factor and the passkeys. A request for the page shows no secret and creates no secret. */
export const security: AccountPage = {
  page: 'security',
  path,
  title: 'security.title',
  navigation: 'security.nav',
  isThere: ({ settings }) => settings.mfaEnabled || settings.passkeysEnabled,
  needsFresh: true,
  async show({ ctx, reader, person, session: { user } }) {
    const passkeys = ctx.settings.passkeysEnabled ? await listPasskeys(ctx, person.id) : null
    return securityPage(reader, { factor: ctx.settings.mfaEnabled ? { since: user.totpEnabledAt } : null, passkeys })
  },
}

/**
 * Activates or replaces the authenticator app. The page first shows the QR code, then asks for the first code, then shows the recovery
 * codes.
 */
export const authenticator: AccountPage = {
  page: 'authenticator',
  path: `${path}/authenticator`,
  title: 'security.app',
  sentences,
  faultFields,
  isThere,
  // If a person began in a fresh session, the person can finish after the session is no longer fresh.
  needsFresh: (visit, fields) => begunIn(visit, fields) === null,
  show(visit, state) {
    const begun = begunIn(visit, state.values)
    if (begun) return enrolment(visit, begun, state)
    return beginFactorPage(visit.reader, state, { isReplacing: visit.person.mfaEnabled, formOf: visit.formOf })
  },
  async post(visit, fields) {
    const { ctx, session } = visit
    const { code = '' } = fields
    if (fields['enrolment'] === undefined) return begin(visit, code)
    const begun = begunIn(visit, fields)
    if (!begun) throw new FormFault({ form: 'security.too_late' }, { keepsValues: false })
    // If the person began again in another tab, this secret is no longer valid.
    if (!(await isPendingSecret(ctx, session.user, begun.secret)))
      throw new FormFault({ form: 'security.begun_again' }, { keepsValues: false })
    requireFields({ code }, 'code')
    await visit.ask.confirmTotp({ code })
    return recoveryCodesPage(visit.reader, begun.recoveryCodes, { isNewFactor: true })
  },
}

function begunIn({ ctx, session }: AccountVisit, { enrolment: sealed }: Fields): PageEnrolment | null {
  return sealed === undefined ? null : openEnrolment(ctx, session, sealed)
}

async function begin(visit: AccountVisit, code: string) {
  if (visit.person.mfaEnabled) requireFields({ code }, 'code')
  const { secret, recoveryCodes } = await visit.ask.enrollTotp(visit.person.mfaEnabled ? { code } : {})
  return enrolment(visit, { secret, recoveryCodes }, emptyForm)
}

function enrolment({ ctx, reader, session, person, formOf }: AccountVisit, begun: PageEnrolment, state = emptyForm) {
  const { qrSvg, provisioningUri } = forAuthenticatorApp(ctx, person.email, begun.secret)
  const sealed = hidden('enrolment', sealEnrolment(ctx, session, begun))
  return enrolmentPage(reader, state, { secret: begun.secret, qrSvg, provisioningUri, sealed, formOf })
}

export const recoveryCodes: AccountPage = {
  page: 'recoveryCodes',
  path: `${path}/recovery-codes`,
  title: 'security.codes',
  sentences,
  faultFields,
  isThere,
  needsFresh: true,
  show: (visit, state) => newCodesPage(visit.reader, state, requireFactor(visit).formOf),
  async post({ ask, reader }, fields) {
    requireFields(fields, 'code')
    return recoveryCodesPage(reader, await ask.regenerateRecoveryCodes({ code: fields['code'] ?? '' }), { isNewFactor: false })
  },
}

/** Asks for confirmation before the second factor is removed. */
export const turnOffFactor: AccountPage = {
  page: 'turnOffFactor',
  path: `${path}/turn-off`,
  title: 'security.off_title',
  sentences,
  faultFields: { ...faultFields, UNAUTHORIZED: 'password' },
  isThere,
  needsFresh: true,
  show(visit, state) {
    const { ctx, reader, session, formOf } = requireFactor(visit)
    return turnOffPage(reader, state, { asksPassword: takesPassword(ctx, session.user), formOf })
  },
  async post({ ctx, ask, session }, fields) {
    const asksPassword = takesPassword(ctx, session.user)
    const { password = '', code = '' } = fields
    requireFields(fields, ...(asksPassword ? ['password'] : []), 'code')
    await ask.disableTotp({ code, ...(asksPassword && { password }) })
    return { notice: 'factor_off', to: path }
  },
}

/**
 * Returns the visit of a person who has a second factor.
 * @throws Elsewhere if the person has no second factor
 */
function requireFactor(visit: AccountVisit): AccountVisit {
  if (!visit.person.mfaEnabled) throw new Elsewhere({ to: visit.reader.href(path) })
  return visit
}
