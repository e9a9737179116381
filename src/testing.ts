export { answer } from './testing/fake-provider/answer-honestly'
export type {
  Authorization,
  CodeOptions,
  FakeEndpoint,
  FakeHandler,
  FakeProfile,
  FakeProvider,
  FakeRequest,
} from './testing/fake-provider/fake-provider'
export { startFakeProvider } from './testing/fake-provider/start-fake-provider'
export { type LoginAsOptions, loginAs, openSessionAs, type SignedIn, type SignedInSession, type WhichUser } from './testing/login-as'
export { linkTokenOf, type Mailbox, mailbox, type TestClock, testClock, type WantedMail } from './testing/mailbox'
export { type StoreCase, type StoreContractOptions, storeContract } from './testing/store-contract'
export {
  type AssertionRequest,
  type AuthenticatorAlgorithm,
  type AuthenticatorLies,
  type CreationRequest,
  type VirtualAssertion,
  type VirtualAuthenticator,
  type VirtualAuthenticatorOptions,
  type VirtualRegistration,
  virtualAuthenticator,
} from './testing/virtual-authenticator'
