import { ConfigurationError } from '../core/errors'
import { checkClientOptions, KEY_SET_OPTIONS, type KeySetClientOptions, mergeEndpoints } from './client-options'
import { OidcClient, type OidcClientOptions } from './oidc-client'
import type { OAuthTokens, OAuthUser } from './provider-client'
import { unusableIdentity } from './provider-refusal'

export interface MicrosoftClientOptions extends KeySetClientOptions {
  /**
   * Which accounts may sign in. `common`: work, school and personal accounts. `organizations`: work and school accounts. `consumers`:
   * personal accounts. The id of a tenant: only accounts of this tenant. Default `common`.
   */
  tenant?: string
  /**
   * `sub`: Microsoft's id of the person for this application only. `oid`: the person's id in the directory, which is the same for every
   * application. doorward stores `oid` as `oid.tid`. Default `sub`. If you change this option, existing links no longer match.
   */
  subject?: 'sub' | 'oid'
}

const CONSUMERS = '9188040d-6c67-4c5b-b112-36a304b66dad'
const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const TENANT_IN_ISSUER = '{tenantid}'

/**
 * Sign in with Microsoft (Entra ID): OpenID Connect with one issuer for each tenant, and one key set for all issuers. Anybody can create a
 * tenant and write any address into an account of that tenant. So an address counts as verified only if `xms_edov` says that the tenant
 * owns the domain.
 */
export class MicrosoftClient extends OidcClient {
  readonly #tenant: string
  readonly #issuer: string
  readonly #subject: 'sub' | 'oid'

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: MicrosoftClientOptions) {
    const { tenant, subject, issuer, oidcOptions } = readOptions(options)
    super(oidcOptions)
    this.#tenant = tenant
    this.#issuer = issuer
    this.#subject = subject
  }

  /** Accepts the issuer of the token's own tenant, if that tenant may sign in. */
  protected override acceptsIssuer(issuer: string, { tid }: Record<string, unknown>): boolean {
    if (typeof tid !== 'string' || !GUID.test(tid) || issuer !== this.#issuer.replace(TENANT_IN_ISSUER, tid)) return false
    if (this.#tenant === 'common') return true
    if (this.#tenant === 'organizations') return tid !== CONSUMERS
    return tid === (this.#tenant === 'consumers' ? CONSUMERS : this.#tenant)
  }

  protected override parseUser(claims: Record<string, unknown>, tokens: OAuthTokens): OAuthUser {
    const { xms_edov: isOwnersDomain, oid, tid } = claims
    const user = super.parseUser(claims, tokens)
    const emailVerified = [true, 1, 'true', '1'].includes(isOwnersDomain as never) ? true : null
    if (this.#subject === 'sub') return { ...user, emailVerified }
    if (typeof oid !== 'string' || typeof tid !== 'string' || !GUID.test(oid) || !GUID.test(tid))
      throw unusableIdentity(this.providerName, 'oid or tid is missing: ask for the scope profile')
    return { ...user, subject: `${oid}.${tid}`, emailVerified }
  }
}

function readOptions(options: MicrosoftClientOptions) {
  checkClientOptions('MicrosoftClient', options, [...KEY_SET_OPTIONS, 'endpoints', 'tenant', 'subject'])
  const { endpoints, tenant = 'common', subject = 'sub', ...rest } = options
  if (!['common', 'organizations', 'consumers'].includes(tenant) && !GUID.test(tenant))
    throw new ConfigurationError(
      "MicrosoftClient: tenant must be 'common', 'organizations', 'consumers', or the id of a tenant in lower case, such as 72f988bf-86f1-41af-91ab-2d7cd011db47.",
    )
  if (subject !== 'sub' && subject !== 'oid') throw new ConfigurationError("MicrosoftClient: subject must be 'sub' or 'oid'.")
  const { issuer, ...addresses } = mergeEndpoints('MicrosoftClient', endpointsOf(tenant), endpoints)
  const oidcOptions: OidcClientOptions = { providerName: 'microsoft', ...rest, ...addresses }
  return { tenant, subject, issuer, oidcOptions }
}

/** No userinfo URL: the profile is in the id_token, and userinfo has no `oid` and no `xms_edov`. */
function endpointsOf(tenant: string) {
  const authority = `https://login.microsoftonline.com/${tenant}`
  return {
    authorizeUrl: `${authority}/oauth2/v2.0/authorize`,
    tokenUrl: `${authority}/oauth2/v2.0/token`,
    jwksUri: `${authority}/discovery/v2.0/keys`,
    issuer: `https://login.microsoftonline.com/${TENANT_IN_ISSUER}/v2.0`,
  }
}
