export { type StoreCase, type StoreContractOptions, storeContract } from './testing/store-contract'
