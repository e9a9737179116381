import type { AuthContext } from '../../context'
import type { TextKey } from '../../core/texts/texts'
import type { FormState } from '../../http/html/form-state'
import { queryParameter } from '../../http/query-parameter'
import { listPasskeys } from '../../passkeys/manage'
import type { PublicPasskey } from '../../passkeys/public-passkey'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { FormFault, requireFields } from '../form-fault'
import { Elsewhere } from '../page-lines'
import { passkeyOfForm } from '../presented-passkey'
import { addPasskeyPage, removePasskeyPage, renamePasskeyPage } from './passkeys-card'

const path = '/account/security'
const sentences: Readonly<Record<string, TextKey>> = {
  EMAIL_NOT_VERIFIED: 'account.verify_first',
  LAST_LOGIN_METHOD: 'passkey.last',
  NOT_FOUND: 'passkey.gone',
  PASSKEY_INVALID: 'passkey.invalid',
  PASSKEY_LIMIT: 'passkey.limit',
  PASSKEY_TAKEN: 'passkey.taken',
}
const isThere = ({ settings }: AuthContext) => settings.passkeysEnabled

/** Adds a passkey. The page's script fills the form. If the form has no passkey, the page shows why the browser made no passkey. */
export const addPasskey: AccountPage = {
  page: 'addPasskey',
  path: `${path}/passkeys/add`,
  title: 'passkey.add',
  sentences,
  isThere,
  needsFresh: true,
  show: ({ ctx, reader, formOf }, state) => addPasskeyPage(reader, state, { options: `${ctx.prefix}/passkeys/register/options`, formOf }),
  async post({ ask }, { name = '', ...fields }) {
    if ((fields['credential'] ?? '') === '') {
      await ask.passkeyRegistrationOptions() // if the script's request failed, throws the same error
      throw new FormFault({ form: 'passkey.not_made' })
    }
    await ask.registerPasskey({ ...passkeyOfForm(fields), ...(name.trim() !== '' && { name }) })
    return { notice: 'passkey_added', to: path }
  },
}

export const passkeyRenaming: AccountPage = {
  page: 'renamePasskey',
  path: `${path}/passkeys/rename`,
  title: 'passkey.rename_page',
  sentences,
  isThere,
  async show(visit, state) {
    return renamePasskeyPage(visit.reader, state, { passkey: await meantPasskey(visit, state), formOf: visit.formOf })
  },
  async post({ ask }, { id = '', name = '' }) {
    requireFields({ name: name.trim() }, 'name')
    await ask.renamePasskey(id, name)
    return { notice: 'passkey_renamed', to: path }
  },
}

/** Asks for confirmation before a passkey is removed. */
export const passkeyRemoval: AccountPage = {
  page: 'removePasskey',
  path: `${path}/passkeys/remove`,
  title: 'passkey.remove_page',
  sentences,
  isThere,
  needsFresh: true,
  async show(visit, state) {
    return removePasskeyPage(visit.reader, state, { passkey: await meantPasskey(visit, state), formOf: visit.formOf })
  },
  async post({ ask }, { id = '' }) {
    await ask.removePasskey(id)
    return { notice: 'passkey_removed', to: path }
  },
}

/**
 * Returns the passkey that the form or the query names.
 * @throws Elsewhere if the person has no such passkey
 */
async function meantPasskey({ ctx, req, reader, person }: AccountVisit, { values }: FormState): Promise<PublicPasskey> {
  const id = values['id'] ?? queryParameter(req, 'id', 64)
  const meant = (await listPasskeys(ctx, person.id)).find((passkey) => passkey.id === id)
  if (!meant) throw new Elsewhere({ to: reader.href(path) })
  return meant
}
