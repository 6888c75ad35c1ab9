/* Written by `make generate` from the functions that go-nvml calls. Do not edit. */
	.text
	.globl nvmlComputeInstanceDestroy
	.hidden nvmlComputeInstanceDestroy
	.type nvmlComputeInstanceDestroy, @function
nvmlComputeInstanceDestroy:
	endbr64
	jmp *velocpy_nvml_table+0(%rip)
	.size nvmlComputeInstanceDestroy, .-nvmlComputeInstanceDestroy
	.globl nvmlComputeInstanceGetInfo
	.hidden nvmlComputeInstanceGetInfo
	.type nvmlComputeInstanceGetInfo, @function
nvmlComputeInstanceGetInfo:
	endbr64
	jmp *velocpy_nvml_table+8(%rip)
	.size nvmlComputeInstanceGetInfo, .-nvmlComputeInstanceGetInfo
	.globl nvmlComputeInstanceGetInfo_v2
	.hidden nvmlComputeInstanceGetInfo_v2
	.type nvmlComputeInstanceGetInfo_v2, @function
nvmlComputeInstanceGetInfo_v2:
	endbr64
	jmp *velocpy_nvml_table+16(%rip)
	.size nvmlComputeInstanceGetInfo_v2, .-nvmlComputeInstanceGetInfo_v2
	.globl nvmlDeviceClearAccountingPids
	.hidden nvmlDeviceClearAccountingPids
	.type nvmlDeviceClearAccountingPids, @function
nvmlDeviceClearAccountingPids:
	endbr64
	jmp *velocpy_nvml_table+24(%rip)
	.size nvmlDeviceClearAccountingPids, .-nvmlDeviceClearAccountingPids
	.globl nvmlDeviceClearCpuAffinity
	.hidden nvmlDeviceClearCpuAffinity
	.type nvmlDeviceClearCpuAffinity, @function
nvmlDeviceClearCpuAffinity:
	endbr64
	jmp *velocpy_nvml_table+32(%rip)
	.size nvmlDeviceClearCpuAffinity, .-nvmlDeviceClearCpuAffinity
	.globl nvmlDeviceClearEccErrorCounts
	.hidden nvmlDeviceClearEccErrorCounts
	.type nvmlDeviceClearEccErrorCounts, @function
nvmlDeviceClearEccErrorCounts:
	endbr64
	jmp *velocpy_nvml_table+40(%rip)
	.size nvmlDeviceClearEccErrorCounts, .-nvmlDeviceClearEccErrorCounts
	.globl nvmlDeviceClearFieldValues
	.hidden nvmlDeviceClearFieldValues
	.type nvmlDeviceClearFieldValues, @function
nvmlDeviceClearFieldValues:
	endbr64
	jmp *velocpy_nvml_table+48(%rip)
	.size nvmlDeviceClearFieldValues, .-nvmlDeviceClearFieldValues
	.globl nvmlDeviceCreateGpuInstance
	.hidden nvmlDeviceCreateGpuInstance
	.type nvmlDeviceCreateGpuInstance, @function
nvmlDeviceCreateGpuInstance:
	endbr64
	jmp *velocpy_nvml_table+56(%rip)
	.size nvmlDeviceCreateGpuInstance, .-nvmlDeviceCreateGpuInstance
	.globl nvmlDeviceCreateGpuInstanceWithPlacement
	.hidden nvmlDeviceCreateGpuInstanceWithPlacement
	.type nvmlDeviceCreateGpuInstanceWithPlacement, @function
nvmlDeviceCreateGpuInstanceWithPlacement:
	endbr64
	jmp *velocpy_nvml_table+64(%rip)
	.size nvmlDeviceCreateGpuInstanceWithPlacement, .-nvmlDeviceCreateGpuInstanceWithPlacement
	.globl nvmlDeviceDiscoverGpus
	.hidden nvmlDeviceDiscoverGpus
	.type nvmlDeviceDiscoverGpus, @function
nvmlDeviceDiscoverGpus:
	endbr64
	jmp *velocpy_nvml_table+72(%rip)
	.size nvmlDeviceDiscoverGpus, .-nvmlDeviceDiscoverGpus
	.globl nvmlDeviceFreezeNvLinkUtilizationCounter
	.hidden nvmlDeviceFreezeNvLinkUtilizationCounter
	.type nvmlDeviceFreezeNvLinkUtilizationCounter, @function
nvmlDeviceFreezeNvLinkUtilizationCounter:
	endbr64
	jmp *velocpy_nvml_table+80(%rip)
	.size nvmlDeviceFreezeNvLinkUtilizationCounter, .-nvmlDeviceFreezeNvLinkUtilizationCounter
	.globl nvmlDeviceGetAPIRestriction
	.hidden nvmlDeviceGetAPIRestriction
	.type nvmlDeviceGetAPIRestriction, @function
nvmlDeviceGetAPIRestriction:
	endbr64
	jmp *velocpy_nvml_table+88(%rip)
	.size nvmlDeviceGetAPIRestriction, .-nvmlDeviceGetAPIRestriction
	.globl nvmlDeviceGetAccountingBufferSize
	.hidden nvmlDeviceGetAccountingBufferSize
	.type nvmlDeviceGetAccountingBufferSize, @function
nvmlDeviceGetAccountingBufferSize:
	endbr64
	jmp *velocpy_nvml_table+96(%rip)
	.size nvmlDeviceGetAccountingBufferSize, .-nvmlDeviceGetAccountingBufferSize
	.globl nvmlDeviceGetAccountingMode
	.hidden nvmlDeviceGetAccountingMode
	.type nvmlDeviceGetAccountingMode, @function
nvmlDeviceGetAccountingMode:
	endbr64
	jmp *velocpy_nvml_table+104(%rip)
	.size nvmlDeviceGetAccountingMode, .-nvmlDeviceGetAccountingMode
	.globl nvmlDeviceGetAccountingPids
	.hidden nvmlDeviceGetAccountingPids
	.type nvmlDeviceGetAccountingPids, @function
nvmlDeviceGetAccountingPids:
	endbr64
	jmp *velocpy_nvml_table+112(%rip)
	.size nvmlDeviceGetAccountingPids, .-nvmlDeviceGetAccountingPids
	.globl nvmlDeviceGetAccountingStats
	.hidden nvmlDeviceGetAccountingStats
	.type nvmlDeviceGetAccountingStats, @function
nvmlDeviceGetAccountingStats:
	endbr64
	jmp *velocpy_nvml_table+120(%rip)
	.size nvmlDeviceGetAccountingStats, .-nvmlDeviceGetAccountingStats
	.globl nvmlDeviceGetActiveVgpus
	.hidden nvmlDeviceGetActiveVgpus
	.type nvmlDeviceGetActiveVgpus, @function
nvmlDeviceGetActiveVgpus:
	endbr64
	jmp *velocpy_nvml_table+128(%rip)
	.size nvmlDeviceGetActiveVgpus, .-nvmlDeviceGetActiveVgpus
	.globl nvmlDeviceGetAdaptiveClockInfoStatus
	.hidden nvmlDeviceGetAdaptiveClockInfoStatus
	.type nvmlDeviceGetAdaptiveClockInfoStatus, @function
nvmlDeviceGetAdaptiveClockInfoStatus:
	endbr64
	jmp *velocpy_nvml_table+136(%rip)
	.size nvmlDeviceGetAdaptiveClockInfoStatus, .-nvmlDeviceGetAdaptiveClockInfoStatus
	.globl nvmlDeviceGetAddressingMode
	.hidden nvmlDeviceGetAddressingMode
	.type nvmlDeviceGetAddressingMode, @function
nvmlDeviceGetAddressingMode:
	endbr64
	jmp *velocpy_nvml_table+144(%rip)
	.size nvmlDeviceGetAddressingMode, .-nvmlDeviceGetAddressingMode
	.globl nvmlDeviceGetApplicationsClock
	.hidden nvmlDeviceGetApplicationsClock
	.type nvmlDeviceGetApplicationsClock, @function
nvmlDeviceGetApplicationsClock:
	endbr64
	jmp *velocpy_nvml_table+152(%rip)
	.size nvmlDeviceGetApplicationsClock, .-nvmlDeviceGetApplicationsClock
	.globl nvmlDeviceGetArchitecture
	.hidden nvmlDeviceGetArchitecture
	.type nvmlDeviceGetArchitecture, @function
nvmlDeviceGetArchitecture:
	endbr64
	jmp *velocpy_nvml_table+160(%rip)
	.size nvmlDeviceGetArchitecture, .-nvmlDeviceGetArchitecture
	.globl nvmlDeviceGetAttributes
	.hidden nvmlDeviceGetAttributes
	.type nvmlDeviceGetAttributes, @function
nvmlDeviceGetAttributes:
	endbr64
	jmp *velocpy_nvml_table+168(%rip)
	.size nvmlDeviceGetAttributes, .-nvmlDeviceGetAttributes
	.globl nvmlDeviceGetAttributes_v2
	.hidden nvmlDeviceGetAttributes_v2
	.type nvmlDeviceGetAttributes_v2, @function
nvmlDeviceGetAttributes_v2:
	endbr64
	jmp *velocpy_nvml_table+176(%rip)
	.size nvmlDeviceGetAttributes_v2, .-nvmlDeviceGetAttributes_v2
	.globl nvmlDeviceGetAutoBoostedClocksEnabled
	.hidden nvmlDeviceGetAutoBoostedClocksEnabled
	.type nvmlDeviceGetAutoBoostedClocksEnabled, @function
nvmlDeviceGetAutoBoostedClocksEnabled:
	endbr64
	jmp *velocpy_nvml_table+184(%rip)
	.size nvmlDeviceGetAutoBoostedClocksEnabled, .-nvmlDeviceGetAutoBoostedClocksEnabled
	.globl nvmlDeviceGetBAR1MemoryInfo
	.hidden nvmlDeviceGetBAR1MemoryInfo
	.type nvmlDeviceGetBAR1MemoryInfo, @function
nvmlDeviceGetBAR1MemoryInfo:
	endbr64
	jmp *velocpy_nvml_table+192(%rip)
	.size nvmlDeviceGetBAR1MemoryInfo, .-nvmlDeviceGetBAR1MemoryInfo
	.globl nvmlDeviceGetBoardId
	.hidden nvmlDeviceGetBoardId
	.type nvmlDeviceGetBoardId, @function
nvmlDeviceGetBoardId:
	endbr64
	jmp *velocpy_nvml_table+200(%rip)
	.size nvmlDeviceGetBoardId, .-nvmlDeviceGetBoardId
	.globl nvmlDeviceGetBoardPartNumber
	.hidden nvmlDeviceGetBoardPartNumber
	.type nvmlDeviceGetBoardPartNumber, @function
nvmlDeviceGetBoardPartNumber:
	endbr64
	jmp *velocpy_nvml_table+208(%rip)
	.size nvmlDeviceGetBoardPartNumber, .-nvmlDeviceGetBoardPartNumber
	.globl nvmlDeviceGetBrand
	.hidden nvmlDeviceGetBrand
	.type nvmlDeviceGetBrand, @function
nvmlDeviceGetBrand:
	endbr64
	jmp *velocpy_nvml_table+216(%rip)
	.size nvmlDeviceGetBrand, .-nvmlDeviceGetBrand
	.globl nvmlDeviceGetBridgeChipInfo
	.hidden nvmlDeviceGetBridgeChipInfo
	.type nvmlDeviceGetBridgeChipInfo, @function
nvmlDeviceGetBridgeChipInfo:
	endbr64
	jmp *velocpy_nvml_table+224(%rip)
	.size nvmlDeviceGetBridgeChipInfo, .-nvmlDeviceGetBridgeChipInfo
	.globl nvmlDeviceGetBusType
	.hidden nvmlDeviceGetBusType
	.type nvmlDeviceGetBusType, @function
nvmlDeviceGetBusType:
	endbr64
	jmp *velocpy_nvml_table+232(%rip)
	.size nvmlDeviceGetBusType, .-nvmlDeviceGetBusType
	.globl nvmlDeviceGetC2cModeInfoV
	.hidden nvmlDeviceGetC2cModeInfoV
	.type nvmlDeviceGetC2cModeInfoV, @function
nvmlDeviceGetC2cModeInfoV:
	endbr64
	jmp *velocpy_nvml_table+240(%rip)
	.size nvmlDeviceGetC2cModeInfoV, .-nvmlDeviceGetC2cModeInfoV
	.globl nvmlDeviceGetCapabilities
	.hidden nvmlDeviceGetCapabilities
	.type nvmlDeviceGetCapabilities, @function
nvmlDeviceGetCapabilities:
	endbr64
	jmp *velocpy_nvml_table+248(%rip)
	.size nvmlDeviceGetCapabilities, .-nvmlDeviceGetCapabilities
	.globl nvmlDeviceGetClkMonStatus
	.hidden nvmlDeviceGetClkMonStatus
	.type nvmlDeviceGetClkMonStatus, @function
nvmlDeviceGetClkMonStatus:
	endbr64
	jmp *velocpy_nvml_table+256(%rip)
	.size nvmlDeviceGetClkMonStatus, .-nvmlDeviceGetClkMonStatus
	.globl nvmlDeviceGetClock
	.hidden nvmlDeviceGetClock
	.type nvmlDeviceGetClock, @function
nvmlDeviceGetClock:
	endbr64
	jmp *velocpy_nvml_table+264(%rip)
	.size nvmlDeviceGetClock, .-nvmlDeviceGetClock
	.globl nvmlDeviceGetClockInfo
	.hidden nvmlDeviceGetClockInfo
	.type nvmlDeviceGetClockInfo, @function
nvmlDeviceGetClockInfo:
	endbr64
	jmp *velocpy_nvml_table+272(%rip)
	.size nvmlDeviceGetClockInfo, .-nvmlDeviceGetClockInfo
	.globl nvmlDeviceGetClockOffsets
	.hidden nvmlDeviceGetClockOffsets
	.type nvmlDeviceGetClockOffsets, @function
nvmlDeviceGetClockOffsets:
	endbr64
	jmp *velocpy_nvml_table+280(%rip)
	.size nvmlDeviceGetClockOffsets, .-nvmlDeviceGetClockOffsets
	.globl nvmlDeviceGetComputeInstanceId
	.hidden nvmlDeviceGetComputeInstanceId
	.type nvmlDeviceGetComputeInstanceId, @function
nvmlDeviceGetComputeInstanceId:
	endbr64
	jmp *velocpy_nvml_table+288(%rip)
	.size nvmlDeviceGetComputeInstanceId, .-nvmlDeviceGetComputeInstanceId
	.globl nvmlDeviceGetComputeMode
	.hidden nvmlDeviceGetComputeMode
	.type nvmlDeviceGetComputeMode, @function
nvmlDeviceGetComputeMode:
	endbr64
	jmp *velocpy_nvml_table+296(%rip)
	.size nvmlDeviceGetComputeMode, .-nvmlDeviceGetComputeMode
	.globl nvmlDeviceGetComputeRunningProcesses
	.hidden nvmlDeviceGetComputeRunningProcesses
	.type nvmlDeviceGetComputeRunningProcesses, @function
nvmlDeviceGetComputeRunningProcesses:
	endbr64
	jmp *velocpy_nvml_table+304(%rip)
	.size nvmlDeviceGetComputeRunningProcesses, .-nvmlDeviceGetComputeRunningProcesses
	.globl nvmlDeviceGetComputeRunningProcesses_v2
	.hidden nvmlDeviceGetComputeRunningProcesses_v2
	.type nvmlDeviceGetComputeRunningProcesses_v2, @function
nvmlDeviceGetComputeRunningProcesses_v2:
	endbr64
	jmp *velocpy_nvml_table+312(%rip)
	.size nvmlDeviceGetComputeRunningProcesses_v2, .-nvmlDeviceGetComputeRunningProcesses_v2
	.globl nvmlDeviceGetComputeRunningProcesses_v3
	.hidden nvmlDeviceGetComputeRunningProcesses_v3
	.type nvmlDeviceGetComputeRunningProcesses_v3, @function
nvmlDeviceGetComputeRunningProcesses_v3:
	endbr64
	jmp *velocpy_nvml_table+320(%rip)
	.size nvmlDeviceGetComputeRunningProcesses_v3, .-nvmlDeviceGetComputeRunningProcesses_v3
	.globl nvmlDeviceGetConfComputeGpuAttestationReport
	.hidden nvmlDeviceGetConfComputeGpuAttestationReport
	.type nvmlDeviceGetConfComputeGpuAttestationReport, @function
nvmlDeviceGetConfComputeGpuAttestationReport:
	endbr64
	jmp *velocpy_nvml_table+328(%rip)
	.size nvmlDeviceGetConfComputeGpuAttestationReport, .-nvmlDeviceGetConfComputeGpuAttestationReport
	.globl nvmlDeviceGetConfComputeGpuCertificate
	.hidden nvmlDeviceGetConfComputeGpuCertificate
	.type nvmlDeviceGetConfComputeGpuCertificate, @function
nvmlDeviceGetConfComputeGpuCertificate:
	endbr64
	jmp *velocpy_nvml_table+336(%rip)
	.size nvmlDeviceGetConfComputeGpuCertificate, .-nvmlDeviceGetConfComputeGpuCertificate
	.globl nvmlDeviceGetConfComputeMemSizeInfo
	.hidden nvmlDeviceGetConfComputeMemSizeInfo
	.type nvmlDeviceGetConfComputeMemSizeInfo, @function
nvmlDeviceGetConfComputeMemSizeInfo:
	endbr64
	jmp *velocpy_nvml_table+344(%rip)
	.size nvmlDeviceGetConfComputeMemSizeInfo, .-nvmlDeviceGetConfComputeMemSizeInfo
	.globl nvmlDeviceGetConfComputeProtectedMemoryUsage
	.hidden nvmlDeviceGetConfComputeProtectedMemoryUsage
	.type nvmlDeviceGetConfComputeProtectedMemoryUsage, @function
nvmlDeviceGetConfComputeProtectedMemoryUsage:
	endbr64
	jmp *velocpy_nvml_table+352(%rip)
	.size nvmlDeviceGetConfComputeProtectedMemoryUsage, .-nvmlDeviceGetConfComputeProtectedMemoryUsage
	.globl nvmlDeviceGetCoolerInfo
	.hidden nvmlDeviceGetCoolerInfo
	.type nvmlDeviceGetCoolerInfo, @function
nvmlDeviceGetCoolerInfo:
	endbr64
	jmp *velocpy_nvml_table+360(%rip)
	.size nvmlDeviceGetCoolerInfo, .-nvmlDeviceGetCoolerInfo
	.globl nvmlDeviceGetCount
	.hidden nvmlDeviceGetCount
	.type nvmlDeviceGetCount, @function
nvmlDeviceGetCount:
	endbr64
	jmp *velocpy_nvml_table+368(%rip)
	.size nvmlDeviceGetCount, .-nvmlDeviceGetCount
	.globl nvmlDeviceGetCount_v2
	.hidden nvmlDeviceGetCount_v2
	.type nvmlDeviceGetCount_v2, @function
nvmlDeviceGetCount_v2:
	endbr64
	jmp *velocpy_nvml_table+376(%rip)
	.size nvmlDeviceGetCount_v2, .-nvmlDeviceGetCount_v2
	.globl nvmlDeviceGetCpuAffinity
	.hidden nvmlDeviceGetCpuAffinity
	.type nvmlDeviceGetCpuAffinity, @function
nvmlDeviceGetCpuAffinity:
	endbr64
	jmp *velocpy_nvml_table+384(%rip)
	.size nvmlDeviceGetCpuAffinity, .-nvmlDeviceGetCpuAffinity
	.globl nvmlDeviceGetCpuAffinityWithinScope
	.hidden nvmlDeviceGetCpuAffinityWithinScope
	.type nvmlDeviceGetCpuAffinityWithinScope, @function
nvmlDeviceGetCpuAffinityWithinScope:
	endbr64
	jmp *velocpy_nvml_table+392(%rip)
	.size nvmlDeviceGetCpuAffinityWithinScope, .-nvmlDeviceGetCpuAffinityWithinScope
	.globl nvmlDeviceGetCreatableVgpus
	.hidden nvmlDeviceGetCreatableVgpus
	.type nvmlDeviceGetCreatableVgpus, @function
nvmlDeviceGetCreatableVgpus:
	endbr64
	jmp *velocpy_nvml_table+400(%rip)
	.size nvmlDeviceGetCreatableVgpus, .-nvmlDeviceGetCreatableVgpus
	.globl nvmlDeviceGetCudaComputeCapability
	.hidden nvmlDeviceGetCudaComputeCapability
	.type nvmlDeviceGetCudaComputeCapability, @function
nvmlDeviceGetCudaComputeCapability:
	endbr64
	jmp *velocpy_nvml_table+408(%rip)
	.size nvmlDeviceGetCudaComputeCapability, .-nvmlDeviceGetCudaComputeCapability
	.globl nvmlDeviceGetCurrPcieLinkGeneration
	.hidden nvmlDeviceGetCurrPcieLinkGeneration
	.type nvmlDeviceGetCurrPcieLinkGeneration, @function
nvmlDeviceGetCurrPcieLinkGeneration:
	endbr64
	jmp *velocpy_nvml_table+416(%rip)
	.size nvmlDeviceGetCurrPcieLinkGeneration, .-nvmlDeviceGetCurrPcieLinkGeneration
	.globl nvmlDeviceGetCurrPcieLinkWidth
	.hidden nvmlDeviceGetCurrPcieLinkWidth
	.type nvmlDeviceGetCurrPcieLinkWidth, @function
nvmlDeviceGetCurrPcieLinkWidth:
	endbr64
	jmp *velocpy_nvml_table+424(%rip)
	.size nvmlDeviceGetCurrPcieLinkWidth, .-nvmlDeviceGetCurrPcieLinkWidth
	.globl nvmlDeviceGetCurrentClockFreqs
	.hidden nvmlDeviceGetCurrentClockFreqs
	.type nvmlDeviceGetCurrentClockFreqs, @function
nvmlDeviceGetCurrentClockFreqs:
	endbr64
	jmp *velocpy_nvml_table+432(%rip)
	.size nvmlDeviceGetCurrentClockFreqs, .-nvmlDeviceGetCurrentClockFreqs
	.globl nvmlDeviceGetCurrentClocksEventReasons
	.hidden nvmlDeviceGetCurrentClocksEventReasons
	.type nvmlDeviceGetCurrentClocksEventReasons, @function
nvmlDeviceGetCurrentClocksEventReasons:
	endbr64
	jmp *velocpy_nvml_table+440(%rip)
	.size nvmlDeviceGetCurrentClocksEventReasons, .-nvmlDeviceGetCurrentClocksEventReasons
	.globl nvmlDeviceGetCurrentClocksThrottleReasons
	.hidden nvmlDeviceGetCurrentClocksThrottleReasons
	.type nvmlDeviceGetCurrentClocksThrottleReasons, @function
nvmlDeviceGetCurrentClocksThrottleReasons:
	endbr64
	jmp *velocpy_nvml_table+448(%rip)
	.size nvmlDeviceGetCurrentClocksThrottleReasons, .-nvmlDeviceGetCurrentClocksThrottleReasons
	.globl nvmlDeviceGetDecoderUtilization
	.hidden nvmlDeviceGetDecoderUtilization
	.type nvmlDeviceGetDecoderUtilization, @function
nvmlDeviceGetDecoderUtilization:
	endbr64
	jmp *velocpy_nvml_table+456(%rip)
	.size nvmlDeviceGetDecoderUtilization, .-nvmlDeviceGetDecoderUtilization
	.globl nvmlDeviceGetDefaultApplicationsClock
	.hidden nvmlDeviceGetDefaultApplicationsClock
	.type nvmlDeviceGetDefaultApplicationsClock, @function
nvmlDeviceGetDefaultApplicationsClock:
	endbr64
	jmp *velocpy_nvml_table+464(%rip)
	.size nvmlDeviceGetDefaultApplicationsClock, .-nvmlDeviceGetDefaultApplicationsClock
	.globl nvmlDeviceGetDefaultEccMode
	.hidden nvmlDeviceGetDefaultEccMode
	.type nvmlDeviceGetDefaultEccMode, @function
nvmlDeviceGetDefaultEccMode:
	endbr64
	jmp *velocpy_nvml_table+472(%rip)
	.size nvmlDeviceGetDefaultEccMode, .-nvmlDeviceGetDefaultEccMode
	.globl nvmlDeviceGetDetailedEccErrors
	.hidden nvmlDeviceGetDetailedEccErrors
	.type nvmlDeviceGetDetailedEccErrors, @function
nvmlDeviceGetDetailedEccErrors:
	endbr64
	jmp *velocpy_nvml_table+480(%rip)
	.size nvmlDeviceGetDetailedEccErrors, .-nvmlDeviceGetDetailedEccErrors
	.globl nvmlDeviceGetDeviceHandleFromMigDeviceHandle
	.hidden nvmlDeviceGetDeviceHandleFromMigDeviceHandle
	.type nvmlDeviceGetDeviceHandleFromMigDeviceHandle, @function
nvmlDeviceGetDeviceHandleFromMigDeviceHandle:
	endbr64
	jmp *velocpy_nvml_table+488(%rip)
	.size nvmlDeviceGetDeviceHandleFromMigDeviceHandle, .-nvmlDeviceGetDeviceHandleFromMigDeviceHandle
	.globl nvmlDeviceGetDisplayActive
	.hidden nvmlDeviceGetDisplayActive
	.type nvmlDeviceGetDisplayActive, @function
nvmlDeviceGetDisplayActive:
	endbr64
	jmp *velocpy_nvml_table+496(%rip)
	.size nvmlDeviceGetDisplayActive, .-nvmlDeviceGetDisplayActive
	.globl nvmlDeviceGetDisplayMode
	.hidden nvmlDeviceGetDisplayMode
	.type nvmlDeviceGetDisplayMode, @function
nvmlDeviceGetDisplayMode:
	endbr64
	jmp *velocpy_nvml_table+504(%rip)
	.size nvmlDeviceGetDisplayMode, .-nvmlDeviceGetDisplayMode
	.globl nvmlDeviceGetDramEncryptionMode
	.hidden nvmlDeviceGetDramEncryptionMode
	.type nvmlDeviceGetDramEncryptionMode, @function
nvmlDeviceGetDramEncryptionMode:
	endbr64
	jmp *velocpy_nvml_table+512(%rip)
	.size nvmlDeviceGetDramEncryptionMode, .-nvmlDeviceGetDramEncryptionMode
	.globl nvmlDeviceGetDriverModel
	.hidden nvmlDeviceGetDriverModel
	.type nvmlDeviceGetDriverModel, @function
nvmlDeviceGetDriverModel:
	endbr64
	jmp *velocpy_nvml_table+520(%rip)
	.size nvmlDeviceGetDriverModel, .-nvmlDeviceGetDriverModel
	.globl nvmlDeviceGetDriverModel_v2
	.hidden nvmlDeviceGetDriverModel_v2
	.type nvmlDeviceGetDriverModel_v2, @function
nvmlDeviceGetDriverModel_v2:
	endbr64
	jmp *velocpy_nvml_table+528(%rip)
	.size nvmlDeviceGetDriverModel_v2, .-nvmlDeviceGetDriverModel_v2
	.globl nvmlDeviceGetDynamicPstatesInfo
	.hidden nvmlDeviceGetDynamicPstatesInfo
	.type nvmlDeviceGetDynamicPstatesInfo, @function
nvmlDeviceGetDynamicPstatesInfo:
	endbr64
	jmp *velocpy_nvml_table+536(%rip)
	.size nvmlDeviceGetDynamicPstatesInfo, .-nvmlDeviceGetDynamicPstatesInfo
	.globl nvmlDeviceGetEccMode
	.hidden nvmlDeviceGetEccMode
	.type nvmlDeviceGetEccMode, @function
nvmlDeviceGetEccMode:
	endbr64
	jmp *velocpy_nvml_table+544(%rip)
	.size nvmlDeviceGetEccMode, .-nvmlDeviceGetEccMode
	.globl nvmlDeviceGetEncoderCapacity
	.hidden nvmlDeviceGetEncoderCapacity
	.type nvmlDeviceGetEncoderCapacity, @function
nvmlDeviceGetEncoderCapacity:
	endbr64
	jmp *velocpy_nvml_table+552(%rip)
	.size nvmlDeviceGetEncoderCapacity, .-nvmlDeviceGetEncoderCapacity
	.globl nvmlDeviceGetEncoderSessions
	.hidden nvmlDeviceGetEncoderSessions
	.type nvmlDeviceGetEncoderSessions, @function
nvmlDeviceGetEncoderSessions:
	endbr64
	jmp *velocpy_nvml_table+560(%rip)
	.size nvmlDeviceGetEncoderSessions, .-nvmlDeviceGetEncoderSessions
	.globl nvmlDeviceGetEncoderStats
	.hidden nvmlDeviceGetEncoderStats
	.type nvmlDeviceGetEncoderStats, @function
nvmlDeviceGetEncoderStats:
	endbr64
	jmp *velocpy_nvml_table+568(%rip)
	.size nvmlDeviceGetEncoderStats, .-nvmlDeviceGetEncoderStats
	.globl nvmlDeviceGetEncoderUtilization
	.hidden nvmlDeviceGetEncoderUtilization
	.type nvmlDeviceGetEncoderUtilization, @function
nvmlDeviceGetEncoderUtilization:
	endbr64
	jmp *velocpy_nvml_table+576(%rip)
	.size nvmlDeviceGetEncoderUtilization, .-nvmlDeviceGetEncoderUtilization
	.globl nvmlDeviceGetEnforcedPowerLimit
	.hidden nvmlDeviceGetEnforcedPowerLimit
	.type nvmlDeviceGetEnforcedPowerLimit, @function
nvmlDeviceGetEnforcedPowerLimit:
	endbr64
	jmp *velocpy_nvml_table+584(%rip)
	.size nvmlDeviceGetEnforcedPowerLimit, .-nvmlDeviceGetEnforcedPowerLimit
	.globl nvmlDeviceGetFBCSessions
	.hidden nvmlDeviceGetFBCSessions
	.type nvmlDeviceGetFBCSessions, @function
nvmlDeviceGetFBCSessions:
	endbr64
	jmp *velocpy_nvml_table+592(%rip)
	.size nvmlDeviceGetFBCSessions, .-nvmlDeviceGetFBCSessions
	.globl nvmlDeviceGetFBCStats
	.hidden nvmlDeviceGetFBCStats
	.type nvmlDeviceGetFBCStats, @function
nvmlDeviceGetFBCStats:
	endbr64
	jmp *velocpy_nvml_table+600(%rip)
	.size nvmlDeviceGetFBCStats, .-nvmlDeviceGetFBCStats
	.globl nvmlDeviceGetFanControlPolicy_v2
	.hidden nvmlDeviceGetFanControlPolicy_v2
	.type nvmlDeviceGetFanControlPolicy_v2, @function
nvmlDeviceGetFanControlPolicy_v2:
	endbr64
	jmp *velocpy_nvml_table+608(%rip)
	.size nvmlDeviceGetFanControlPolicy_v2, .-nvmlDeviceGetFanControlPolicy_v2
	.globl nvmlDeviceGetFanSpeed
	.hidden nvmlDeviceGetFanSpeed
	.type nvmlDeviceGetFanSpeed, @function
nvmlDeviceGetFanSpeed:
	endbr64
	jmp *velocpy_nvml_table+616(%rip)
	.size nvmlDeviceGetFanSpeed, .-nvmlDeviceGetFanSpeed
	.globl nvmlDeviceGetFanSpeedRPM
	.hidden nvmlDeviceGetFanSpeedRPM
	.type nvmlDeviceGetFanSpeedRPM, @function
nvmlDeviceGetFanSpeedRPM:
	endbr64
	jmp *velocpy_nvml_table+624(%rip)
	.size nvmlDeviceGetFanSpeedRPM, .-nvmlDeviceGetFanSpeedRPM
	.globl nvmlDeviceGetFanSpeed_v2
	.hidden nvmlDeviceGetFanSpeed_v2
	.type nvmlDeviceGetFanSpeed_v2, @function
nvmlDeviceGetFanSpeed_v2:
	endbr64
	jmp *velocpy_nvml_table+632(%rip)
	.size nvmlDeviceGetFanSpeed_v2, .-nvmlDeviceGetFanSpeed_v2
	.globl nvmlDeviceGetFieldValues
	.hidden nvmlDeviceGetFieldValues
	.type nvmlDeviceGetFieldValues, @function
nvmlDeviceGetFieldValues:
	endbr64
	jmp *velocpy_nvml_table+640(%rip)
	.size nvmlDeviceGetFieldValues, .-nvmlDeviceGetFieldValues
	.globl nvmlDeviceGetGpcClkMinMaxVfOffset
	.hidden nvmlDeviceGetGpcClkMinMaxVfOffset
	.type nvmlDeviceGetGpcClkMinMaxVfOffset, @function
nvmlDeviceGetGpcClkMinMaxVfOffset:
	endbr64
	jmp *velocpy_nvml_table+648(%rip)
	.size nvmlDeviceGetGpcClkMinMaxVfOffset, .-nvmlDeviceGetGpcClkMinMaxVfOffset
	.globl nvmlDeviceGetGpcClkVfOffset
	.hidden nvmlDeviceGetGpcClkVfOffset
	.type nvmlDeviceGetGpcClkVfOffset, @function
nvmlDeviceGetGpcClkVfOffset:
	endbr64
	jmp *velocpy_nvml_table+656(%rip)
	.size nvmlDeviceGetGpcClkVfOffset, .-nvmlDeviceGetGpcClkVfOffset
	.globl nvmlDeviceGetGpuFabricInfo
	.hidden nvmlDeviceGetGpuFabricInfo
	.type nvmlDeviceGetGpuFabricInfo, @function
nvmlDeviceGetGpuFabricInfo:
	endbr64
	jmp *velocpy_nvml_table+664(%rip)
	.size nvmlDeviceGetGpuFabricInfo, .-nvmlDeviceGetGpuFabricInfo
	.globl nvmlDeviceGetGpuFabricInfoV
	.hidden nvmlDeviceGetGpuFabricInfoV
	.type nvmlDeviceGetGpuFabricInfoV, @function
nvmlDeviceGetGpuFabricInfoV:
	endbr64
	jmp *velocpy_nvml_table+672(%rip)
	.size nvmlDeviceGetGpuFabricInfoV, .-nvmlDeviceGetGpuFabricInfoV
	.globl nvmlDeviceGetGpuInstanceById
	.hidden nvmlDeviceGetGpuInstanceById
	.type nvmlDeviceGetGpuInstanceById, @function
nvmlDeviceGetGpuInstanceById:
	endbr64
	jmp *velocpy_nvml_table+680(%rip)
	.size nvmlDeviceGetGpuInstanceById, .-nvmlDeviceGetGpuInstanceById
	.globl nvmlDeviceGetGpuInstanceId
	.hidden nvmlDeviceGetGpuInstanceId
	.type nvmlDeviceGetGpuInstanceId, @function
nvmlDeviceGetGpuInstanceId:
	endbr64
	jmp *velocpy_nvml_table+688(%rip)
	.size nvmlDeviceGetGpuInstanceId, .-nvmlDeviceGetGpuInstanceId
	.globl nvmlDeviceGetGpuInstancePossiblePlacements
	.hidden nvmlDeviceGetGpuInstancePossiblePlacements
	.type nvmlDeviceGetGpuInstancePossiblePlacements, @function
nvmlDeviceGetGpuInstancePossiblePlacements:
	endbr64
	jmp *velocpy_nvml_table+696(%rip)
	.size nvmlDeviceGetGpuInstancePossiblePlacements, .-nvmlDeviceGetGpuInstancePossiblePlacements
	.globl nvmlDeviceGetGpuInstancePossiblePlacements_v2
	.hidden nvmlDeviceGetGpuInstancePossiblePlacements_v2
	.type nvmlDeviceGetGpuInstancePossiblePlacements_v2, @function
nvmlDeviceGetGpuInstancePossiblePlacements_v2:
	endbr64
	jmp *velocpy_nvml_table+704(%rip)
	.size nvmlDeviceGetGpuInstancePossiblePlacements_v2, .-nvmlDeviceGetGpuInstancePossiblePlacements_v2
	.globl nvmlDeviceGetGpuInstanceProfileInfo
	.hidden nvmlDeviceGetGpuInstanceProfileInfo
	.type nvmlDeviceGetGpuInstanceProfileInfo, @function
nvmlDeviceGetGpuInstanceProfileInfo:
	endbr64
	jmp *velocpy_nvml_table+712(%rip)
	.size nvmlDeviceGetGpuInstanceProfileInfo, .-nvmlDeviceGetGpuInstanceProfileInfo
	.globl nvmlDeviceGetGpuInstanceProfileInfoByIdV
	.hidden nvmlDeviceGetGpuInstanceProfileInfoByIdV
	.type nvmlDeviceGetGpuInstanceProfileInfoByIdV, @function
nvmlDeviceGetGpuInstanceProfileInfoByIdV:
	endbr64
	jmp *velocpy_nvml_table+720(%rip)
	.size nvmlDeviceGetGpuInstanceProfileInfoByIdV, .-nvmlDeviceGetGpuInstanceProfileInfoByIdV
	.globl nvmlDeviceGetGpuInstanceProfileInfoV
	.hidden nvmlDeviceGetGpuInstanceProfileInfoV
	.type nvmlDeviceGetGpuInstanceProfileInfoV, @function
nvmlDeviceGetGpuInstanceProfileInfoV:
	endbr64
	jmp *velocpy_nvml_table+728(%rip)
	.size nvmlDeviceGetGpuInstanceProfileInfoV, .-nvmlDeviceGetGpuInstanceProfileInfoV
	.globl nvmlDeviceGetGpuInstanceRemainingCapacity
	.hidden nvmlDeviceGetGpuInstanceRemainingCapacity
	.type nvmlDeviceGetGpuInstanceRemainingCapacity, @function
nvmlDeviceGetGpuInstanceRemainingCapacity:
	endbr64
	jmp *velocpy_nvml_table+736(%rip)
	.size nvmlDeviceGetGpuInstanceRemainingCapacity, .-nvmlDeviceGetGpuInstanceRemainingCapacity
	.globl nvmlDeviceGetGpuInstances
	.hidden nvmlDeviceGetGpuInstances
	.type nvmlDeviceGetGpuInstances, @function
nvmlDeviceGetGpuInstances:
	endbr64
	jmp *velocpy_nvml_table+744(%rip)
	.size nvmlDeviceGetGpuInstances, .-nvmlDeviceGetGpuInstances
	.globl nvmlDeviceGetGpuMaxPcieLinkGeneration
	.hidden nvmlDeviceGetGpuMaxPcieLinkGeneration
	.type nvmlDeviceGetGpuMaxPcieLinkGeneration, @function
nvmlDeviceGetGpuMaxPcieLinkGeneration:
	endbr64
	jmp *velocpy_nvml_table+752(%rip)
	.size nvmlDeviceGetGpuMaxPcieLinkGeneration, .-nvmlDeviceGetGpuMaxPcieLinkGeneration
	.globl nvmlDeviceGetGpuOperationMode
	.hidden nvmlDeviceGetGpuOperationMode
	.type nvmlDeviceGetGpuOperationMode, @function
nvmlDeviceGetGpuOperationMode:
	endbr64
	jmp *velocpy_nvml_table+760(%rip)
	.size nvmlDeviceGetGpuOperationMode, .-nvmlDeviceGetGpuOperationMode
	.globl nvmlDeviceGetGraphicsRunningProcesses
	.hidden nvmlDeviceGetGraphicsRunningProcesses
	.type nvmlDeviceGetGraphicsRunningProcesses, @function
nvmlDeviceGetGraphicsRunningProcesses:
	endbr64
	jmp *velocpy_nvml_table+768(%rip)
	.size nvmlDeviceGetGraphicsRunningProcesses, .-nvmlDeviceGetGraphicsRunningProcesses
	.globl nvmlDeviceGetGraphicsRunningProcesses_v2
	.hidden nvmlDeviceGetGraphicsRunningProcesses_v2
	.type nvmlDeviceGetGraphicsRunningProcesses_v2, @function
nvmlDeviceGetGraphicsRunningProcesses_v2:
	endbr64
	jmp *velocpy_nvml_table+776(%rip)
	.size nvmlDeviceGetGraphicsRunningProcesses_v2, .-nvmlDeviceGetGraphicsRunningProcesses_v2
	.globl nvmlDeviceGetGraphicsRunningProcesses_v3
	.hidden nvmlDeviceGetGraphicsRunningProcesses_v3
	.type nvmlDeviceGetGraphicsRunningProcesses_v3, @function
nvmlDeviceGetGraphicsRunningProcesses_v3:
	endbr64
	jmp *velocpy_nvml_table+784(%rip)
	.size nvmlDeviceGetGraphicsRunningProcesses_v3, .-nvmlDeviceGetGraphicsRunningProcesses_v3
	.globl nvmlDeviceGetGridLicensableFeatures
	.hidden nvmlDeviceGetGridLicensableFeatures
	.type nvmlDeviceGetGridLicensableFeatures, @function
nvmlDeviceGetGridLicensableFeatures:
	endbr64
	jmp *velocpy_nvml_table+792(%rip)
	.size nvmlDeviceGetGridLicensableFeatures, .-nvmlDeviceGetGridLicensableFeatures
	.globl nvmlDeviceGetGridLicensableFeatures_v2
	.hidden nvmlDeviceGetGridLicensableFeatures_v2
	.type nvmlDeviceGetGridLicensableFeatures_v2, @function
nvmlDeviceGetGridLicensableFeatures_v2:
	endbr64
	jmp *velocpy_nvml_table+800(%rip)
	.size nvmlDeviceGetGridLicensableFeatures_v2, .-nvmlDeviceGetGridLicensableFeatures_v2
	.globl nvmlDeviceGetGridLicensableFeatures_v3
	.hidden nvmlDeviceGetGridLicensableFeatures_v3
	.type nvmlDeviceGetGridLicensableFeatures_v3, @function
nvmlDeviceGetGridLicensableFeatures_v3:
	endbr64
	jmp *velocpy_nvml_table+808(%rip)
	.size nvmlDeviceGetGridLicensableFeatures_v3, .-nvmlDeviceGetGridLicensableFeatures_v3
	.globl nvmlDeviceGetGridLicensableFeatures_v4
	.hidden nvmlDeviceGetGridLicensableFeatures_v4
	.type nvmlDeviceGetGridLicensableFeatures_v4, @function
nvmlDeviceGetGridLicensableFeatures_v4:
	endbr64
	jmp *velocpy_nvml_table+816(%rip)
	.size nvmlDeviceGetGridLicensableFeatures_v4, .-nvmlDeviceGetGridLicensableFeatures_v4
	.globl nvmlDeviceGetGspFirmwareMode
	.hidden nvmlDeviceGetGspFirmwareMode
	.type nvmlDeviceGetGspFirmwareMode, @function
nvmlDeviceGetGspFirmwareMode:
	endbr64
	jmp *velocpy_nvml_table+824(%rip)
	.size nvmlDeviceGetGspFirmwareMode, .-nvmlDeviceGetGspFirmwareMode
	.globl nvmlDeviceGetGspFirmwareVersion
	.hidden nvmlDeviceGetGspFirmwareVersion
	.type nvmlDeviceGetGspFirmwareVersion, @function
nvmlDeviceGetGspFirmwareVersion:
	endbr64
	jmp *velocpy_nvml_table+832(%rip)
	.size nvmlDeviceGetGspFirmwareVersion, .-nvmlDeviceGetGspFirmwareVersion
	.globl nvmlDeviceGetHandleByIndex
	.hidden nvmlDeviceGetHandleByIndex
	.type nvmlDeviceGetHandleByIndex, @function
nvmlDeviceGetHandleByIndex:
	endbr64
	jmp *velocpy_nvml_table+840(%rip)
	.size nvmlDeviceGetHandleByIndex, .-nvmlDeviceGetHandleByIndex
	.globl nvmlDeviceGetHandleByIndex_v2
	.hidden nvmlDeviceGetHandleByIndex_v2
	.type nvmlDeviceGetHandleByIndex_v2, @function
nvmlDeviceGetHandleByIndex_v2:
	endbr64
	jmp *velocpy_nvml_table+848(%rip)
	.size nvmlDeviceGetHandleByIndex_v2, .-nvmlDeviceGetHandleByIndex_v2
	.globl nvmlDeviceGetHandleByPciBusId
	.hidden nvmlDeviceGetHandleByPciBusId
	.type nvmlDeviceGetHandleByPciBusId, @function
nvmlDeviceGetHandleByPciBusId:
	endbr64
	jmp *velocpy_nvml_table+856(%rip)
	.size nvmlDeviceGetHandleByPciBusId, .-nvmlDeviceGetHandleByPciBusId
	.globl nvmlDeviceGetHandleByPciBusId_v2
	.hidden nvmlDeviceGetHandleByPciBusId_v2
	.type nvmlDeviceGetHandleByPciBusId_v2, @function
nvmlDeviceGetHandleByPciBusId_v2:
	endbr64
	jmp *velocpy_nvml_table+864(%rip)
	.size nvmlDeviceGetHandleByPciBusId_v2, .-nvmlDeviceGetHandleByPciBusId_v2
	.globl nvmlDeviceGetHandleBySerial
	.hidden nvmlDeviceGetHandleBySerial
	.type nvmlDeviceGetHandleBySerial, @function
nvmlDeviceGetHandleBySerial:
	endbr64
	jmp *velocpy_nvml_table+872(%rip)
	.size nvmlDeviceGetHandleBySerial, .-nvmlDeviceGetHandleBySerial
	.globl nvmlDeviceGetHandleByUUID
	.hidden nvmlDeviceGetHandleByUUID
	.type nvmlDeviceGetHandleByUUID, @function
nvmlDeviceGetHandleByUUID:
	endbr64
	jmp *velocpy_nvml_table+880(%rip)
	.size nvmlDeviceGetHandleByUUID, .-nvmlDeviceGetHandleByUUID
	.globl nvmlDeviceGetHandleByUUIDV
	.hidden nvmlDeviceGetHandleByUUIDV
	.type nvmlDeviceGetHandleByUUIDV, @function
nvmlDeviceGetHandleByUUIDV:
	endbr64
	jmp *velocpy_nvml_table+888(%rip)
	.size nvmlDeviceGetHandleByUUIDV, .-nvmlDeviceGetHandleByUUIDV
	.globl nvmlDeviceGetHostVgpuMode
	.hidden nvmlDeviceGetHostVgpuMode
	.type nvmlDeviceGetHostVgpuMode, @function
nvmlDeviceGetHostVgpuMode:
	endbr64
	jmp *velocpy_nvml_table+896(%rip)
	.size nvmlDeviceGetHostVgpuMode, .-nvmlDeviceGetHostVgpuMode
	.globl nvmlDeviceGetIndex
	.hidden nvmlDeviceGetIndex
	.type nvmlDeviceGetIndex, @function
nvmlDeviceGetIndex:
	endbr64
	jmp *velocpy_nvml_table+904(%rip)
	.size nvmlDeviceGetIndex, .-nvmlDeviceGetIndex
	.globl nvmlDeviceGetInforomConfigurationChecksum
	.hidden nvmlDeviceGetInforomConfigurationChecksum
	.type nvmlDeviceGetInforomConfigurationChecksum, @function
nvmlDeviceGetInforomConfigurationChecksum:
	endbr64
	jmp *velocpy_nvml_table+912(%rip)
	.size nvmlDeviceGetInforomConfigurationChecksum, .-nvmlDeviceGetInforomConfigurationChecksum
	.globl nvmlDeviceGetInforomImageVersion
	.hidden nvmlDeviceGetInforomImageVersion
	.type nvmlDeviceGetInforomImageVersion, @function
nvmlDeviceGetInforomImageVersion:
	endbr64
	jmp *velocpy_nvml_table+920(%rip)
	.size nvmlDeviceGetInforomImageVersion, .-nvmlDeviceGetInforomImageVersion
	.globl nvmlDeviceGetInforomVersion
	.hidden nvmlDeviceGetInforomVersion
	.type nvmlDeviceGetInforomVersion, @function
nvmlDeviceGetInforomVersion:
	endbr64
	jmp *velocpy_nvml_table+928(%rip)
	.size nvmlDeviceGetInforomVersion, .-nvmlDeviceGetInforomVersion
	.globl nvmlDeviceGetIrqNum
	.hidden nvmlDeviceGetIrqNum
	.type nvmlDeviceGetIrqNum, @function
nvmlDeviceGetIrqNum:
	endbr64
	jmp *velocpy_nvml_table+936(%rip)
	.size nvmlDeviceGetIrqNum, .-nvmlDeviceGetIrqNum
	.globl nvmlDeviceGetJpgUtilization
	.hidden nvmlDeviceGetJpgUtilization
	.type nvmlDeviceGetJpgUtilization, @function
nvmlDeviceGetJpgUtilization:
	endbr64
	jmp *velocpy_nvml_table+944(%rip)
	.size nvmlDeviceGetJpgUtilization, .-nvmlDeviceGetJpgUtilization
	.globl nvmlDeviceGetLastBBXFlushTime
	.hidden nvmlDeviceGetLastBBXFlushTime
	.type nvmlDeviceGetLastBBXFlushTime, @function
nvmlDeviceGetLastBBXFlushTime:
	endbr64
	jmp *velocpy_nvml_table+952(%rip)
	.size nvmlDeviceGetLastBBXFlushTime, .-nvmlDeviceGetLastBBXFlushTime
	.globl nvmlDeviceGetMPSComputeRunningProcesses
	.hidden nvmlDeviceGetMPSComputeRunningProcesses
	.type nvmlDeviceGetMPSComputeRunningProcesses, @function
nvmlDeviceGetMPSComputeRunningProcesses:
	endbr64
	jmp *velocpy_nvml_table+960(%rip)
	.size nvmlDeviceGetMPSComputeRunningProcesses, .-nvmlDeviceGetMPSComputeRunningProcesses
	.globl nvmlDeviceGetMPSComputeRunningProcesses_v2
	.hidden nvmlDeviceGetMPSComputeRunningProcesses_v2
	.type nvmlDeviceGetMPSComputeRunningProcesses_v2, @function
nvmlDeviceGetMPSComputeRunningProcesses_v2:
	endbr64
	jmp *velocpy_nvml_table+968(%rip)
	.size nvmlDeviceGetMPSComputeRunningProcesses_v2, .-nvmlDeviceGetMPSComputeRunningProcesses_v2
	.globl nvmlDeviceGetMPSComputeRunningProcesses_v3
	.hidden nvmlDeviceGetMPSComputeRunningProcesses_v3
	.type nvmlDeviceGetMPSComputeRunningProcesses_v3, @function
nvmlDeviceGetMPSComputeRunningProcesses_v3:
	endbr64
	jmp *velocpy_nvml_table+976(%rip)
	.size nvmlDeviceGetMPSComputeRunningProcesses_v3, .-nvmlDeviceGetMPSComputeRunningProcesses_v3
	.globl nvmlDeviceGetMarginTemperature
	.hidden nvmlDeviceGetMarginTemperature
	.type nvmlDeviceGetMarginTemperature, @function
nvmlDeviceGetMarginTemperature:
	endbr64
	jmp *velocpy_nvml_table+984(%rip)
	.size nvmlDeviceGetMarginTemperature, .-nvmlDeviceGetMarginTemperature
	.globl nvmlDeviceGetMaxClockInfo
	.hidden nvmlDeviceGetMaxClockInfo
	.type nvmlDeviceGetMaxClockInfo, @function
nvmlDeviceGetMaxClockInfo:
	endbr64
	jmp *velocpy_nvml_table+992(%rip)
	.size nvmlDeviceGetMaxClockInfo, .-nvmlDeviceGetMaxClockInfo
	.globl nvmlDeviceGetMaxCustomerBoostClock
	.hidden nvmlDeviceGetMaxCustomerBoostClock
	.type nvmlDeviceGetMaxCustomerBoostClock, @function
nvmlDeviceGetMaxCustomerBoostClock:
	endbr64
	jmp *velocpy_nvml_table+1000(%rip)
	.size nvmlDeviceGetMaxCustomerBoostClock, .-nvmlDeviceGetMaxCustomerBoostClock
	.globl nvmlDeviceGetMaxMigDeviceCount
	.hidden nvmlDeviceGetMaxMigDeviceCount
	.type nvmlDeviceGetMaxMigDeviceCount, @function
nvmlDeviceGetMaxMigDeviceCount:
	endbr64
	jmp *velocpy_nvml_table+1008(%rip)
	.size nvmlDeviceGetMaxMigDeviceCount, .-nvmlDeviceGetMaxMigDeviceCount
	.globl nvmlDeviceGetMaxPcieLinkGeneration
	.hidden nvmlDeviceGetMaxPcieLinkGeneration
	.type nvmlDeviceGetMaxPcieLinkGeneration, @function
nvmlDeviceGetMaxPcieLinkGeneration:
	endbr64
	jmp *velocpy_nvml_table+1016(%rip)
	.size nvmlDeviceGetMaxPcieLinkGeneration, .-nvmlDeviceGetMaxPcieLinkGeneration
	.globl nvmlDeviceGetMaxPcieLinkWidth
	.hidden nvmlDeviceGetMaxPcieLinkWidth
	.type nvmlDeviceGetMaxPcieLinkWidth, @function
nvmlDeviceGetMaxPcieLinkWidth:
	endbr64
	jmp *velocpy_nvml_table+1024(%rip)
	.size nvmlDeviceGetMaxPcieLinkWidth, .-nvmlDeviceGetMaxPcieLinkWidth
	.globl nvmlDeviceGetMemClkMinMaxVfOffset
	.hidden nvmlDeviceGetMemClkMinMaxVfOffset
	.type nvmlDeviceGetMemClkMinMaxVfOffset, @function
nvmlDeviceGetMemClkMinMaxVfOffset:
	endbr64
	jmp *velocpy_nvml_table+1032(%rip)
	.size nvmlDeviceGetMemClkMinMaxVfOffset, .-nvmlDeviceGetMemClkMinMaxVfOffset
	.globl nvmlDeviceGetMemClkVfOffset
	.hidden nvmlDeviceGetMemClkVfOffset
	.type nvmlDeviceGetMemClkVfOffset, @function
nvmlDeviceGetMemClkVfOffset:
	endbr64
	jmp *velocpy_nvml_table+1040(%rip)
	.size nvmlDeviceGetMemClkVfOffset, .-nvmlDeviceGetMemClkVfOffset
	.globl nvmlDeviceGetMemoryAffinity
	.hidden nvmlDeviceGetMemoryAffinity
	.type nvmlDeviceGetMemoryAffinity, @function
nvmlDeviceGetMemoryAffinity:
	endbr64
	jmp *velocpy_nvml_table+1048(%rip)
	.size nvmlDeviceGetMemoryAffinity, .-nvmlDeviceGetMemoryAffinity
	.globl nvmlDeviceGetMemoryBusWidth
	.hidden nvmlDeviceGetMemoryBusWidth
	.type nvmlDeviceGetMemoryBusWidth, @function
nvmlDeviceGetMemoryBusWidth:
	endbr64
	jmp *velocpy_nvml_table+1056(%rip)
	.size nvmlDeviceGetMemoryBusWidth, .-nvmlDeviceGetMemoryBusWidth
	.globl nvmlDeviceGetMemoryErrorCounter
	.hidden nvmlDeviceGetMemoryErrorCounter
	.type nvmlDeviceGetMemoryErrorCounter, @function
nvmlDeviceGetMemoryErrorCounter:
	endbr64
	jmp *velocpy_nvml_table+1064(%rip)
	.size nvmlDeviceGetMemoryErrorCounter, .-nvmlDeviceGetMemoryErrorCounter
	.globl nvmlDeviceGetMemoryInfo
	.hidden nvmlDeviceGetMemoryInfo
	.type nvmlDeviceGetMemoryInfo, @function
nvmlDeviceGetMemoryInfo:
	endbr64
	jmp *velocpy_nvml_table+1072(%rip)
	.size nvmlDeviceGetMemoryInfo, .-nvmlDeviceGetMemoryInfo
	.globl nvmlDeviceGetMemoryInfo_v2
	.hidden nvmlDeviceGetMemoryInfo_v2
	.type nvmlDeviceGetMemoryInfo_v2, @function
nvmlDeviceGetMemoryInfo_v2:
	endbr64
	jmp *velocpy_nvml_table+1080(%rip)
	.size nvmlDeviceGetMemoryInfo_v2, .-nvmlDeviceGetMemoryInfo_v2
	.globl nvmlDeviceGetMigDeviceHandleByIndex
	.hidden nvmlDeviceGetMigDeviceHandleByIndex
	.type nvmlDeviceGetMigDeviceHandleByIndex, @function
nvmlDeviceGetMigDeviceHandleByIndex:
	endbr64
	jmp *velocpy_nvml_table+1088(%rip)
	.size nvmlDeviceGetMigDeviceHandleByIndex, .-nvmlDeviceGetMigDeviceHandleByIndex
	.globl nvmlDeviceGetMigMode
	.hidden nvmlDeviceGetMigMode
	.type nvmlDeviceGetMigMode, @function
nvmlDeviceGetMigMode:
	endbr64
	jmp *velocpy_nvml_table+1096(%rip)
	.size nvmlDeviceGetMigMode, .-nvmlDeviceGetMigMode
	.globl nvmlDeviceGetMinMaxClockOfPState
	.hidden nvmlDeviceGetMinMaxClockOfPState
	.type nvmlDeviceGetMinMaxClockOfPState, @function
nvmlDeviceGetMinMaxClockOfPState:
	endbr64
	jmp *velocpy_nvml_table+1104(%rip)
	.size nvmlDeviceGetMinMaxClockOfPState, .-nvmlDeviceGetMinMaxClockOfPState
	.globl nvmlDeviceGetMinMaxFanSpeed
	.hidden nvmlDeviceGetMinMaxFanSpeed
	.type nvmlDeviceGetMinMaxFanSpeed, @function
nvmlDeviceGetMinMaxFanSpeed:
	endbr64
	jmp *velocpy_nvml_table+1112(%rip)
	.size nvmlDeviceGetMinMaxFanSpeed, .-nvmlDeviceGetMinMaxFanSpeed
	.globl nvmlDeviceGetMinorNumber
	.hidden nvmlDeviceGetMinorNumber
	.type nvmlDeviceGetMinorNumber, @function
nvmlDeviceGetMinorNumber:
	endbr64
	jmp *velocpy_nvml_table+1120(%rip)
	.size nvmlDeviceGetMinorNumber, .-nvmlDeviceGetMinorNumber
	.globl nvmlDeviceGetModuleId
	.hidden nvmlDeviceGetModuleId
	.type nvmlDeviceGetModuleId, @function
nvmlDeviceGetModuleId:
	endbr64
	jmp *velocpy_nvml_table+1128(%rip)
	.size nvmlDeviceGetModuleId, .-nvmlDeviceGetModuleId
	.globl nvmlDeviceGetMultiGpuBoard
	.hidden nvmlDeviceGetMultiGpuBoard
	.type nvmlDeviceGetMultiGpuBoard, @function
nvmlDeviceGetMultiGpuBoard:
	endbr64
	jmp *velocpy_nvml_table+1136(%rip)
	.size nvmlDeviceGetMultiGpuBoard, .-nvmlDeviceGetMultiGpuBoard
	.globl nvmlDeviceGetName
	.hidden nvmlDeviceGetName
	.type nvmlDeviceGetName, @function
nvmlDeviceGetName:
	endbr64
	jmp *velocpy_nvml_table+1144(%rip)
	.size nvmlDeviceGetName, .-nvmlDeviceGetName
	.globl nvmlDeviceGetNumFans
	.hidden nvmlDeviceGetNumFans
	.type nvmlDeviceGetNumFans, @function
nvmlDeviceGetNumFans:
	endbr64
	jmp *velocpy_nvml_table+1152(%rip)
	.size nvmlDeviceGetNumFans, .-nvmlDeviceGetNumFans
	.globl nvmlDeviceGetNumGpuCores
	.hidden nvmlDeviceGetNumGpuCores
	.type nvmlDeviceGetNumGpuCores, @function
nvmlDeviceGetNumGpuCores:
	endbr64
	jmp *velocpy_nvml_table+1160(%rip)
	.size nvmlDeviceGetNumGpuCores, .-nvmlDeviceGetNumGpuCores
	.globl nvmlDeviceGetNumaNodeId
	.hidden nvmlDeviceGetNumaNodeId
	.type nvmlDeviceGetNumaNodeId, @function
nvmlDeviceGetNumaNodeId:
	endbr64
	jmp *velocpy_nvml_table+1168(%rip)
	.size nvmlDeviceGetNumaNodeId, .-nvmlDeviceGetNumaNodeId
	.globl nvmlDeviceGetNvLinkCapability
	.hidden nvmlDeviceGetNvLinkCapability
	.type nvmlDeviceGetNvLinkCapability, @function
nvmlDeviceGetNvLinkCapability:
	endbr64
	jmp *velocpy_nvml_table+1176(%rip)
	.size nvmlDeviceGetNvLinkCapability, .-nvmlDeviceGetNvLinkCapability
	.globl nvmlDeviceGetNvLinkErrorCounter
	.hidden nvmlDeviceGetNvLinkErrorCounter
	.type nvmlDeviceGetNvLinkErrorCounter, @function
nvmlDeviceGetNvLinkErrorCounter:
	endbr64
	jmp *velocpy_nvml_table+1184(%rip)
	.size nvmlDeviceGetNvLinkErrorCounter, .-nvmlDeviceGetNvLinkErrorCounter
	.globl nvmlDeviceGetNvLinkInfo
	.hidden nvmlDeviceGetNvLinkInfo
	.type nvmlDeviceGetNvLinkInfo, @function
nvmlDeviceGetNvLinkInfo:
	endbr64
	jmp *velocpy_nvml_table+1192(%rip)
	.size nvmlDeviceGetNvLinkInfo, .-nvmlDeviceGetNvLinkInfo
	.globl nvmlDeviceGetNvLinkRemoteDeviceType
	.hidden nvmlDeviceGetNvLinkRemoteDeviceType
	.type nvmlDeviceGetNvLinkRemoteDeviceType, @function
nvmlDeviceGetNvLinkRemoteDeviceType:
	endbr64
	jmp *velocpy_nvml_table+1200(%rip)
	.size nvmlDeviceGetNvLinkRemoteDeviceType, .-nvmlDeviceGetNvLinkRemoteDeviceType
	.globl nvmlDeviceGetNvLinkRemotePciInfo
	.hidden nvmlDeviceGetNvLinkRemotePciInfo
	.type nvmlDeviceGetNvLinkRemotePciInfo, @function
nvmlDeviceGetNvLinkRemotePciInfo:
	endbr64
	jmp *velocpy_nvml_table+1208(%rip)
	.size nvmlDeviceGetNvLinkRemotePciInfo, .-nvmlDeviceGetNvLinkRemotePciInfo
	.globl nvmlDeviceGetNvLinkRemotePciInfo_v2
	.hidden nvmlDeviceGetNvLinkRemotePciInfo_v2
	.type nvmlDeviceGetNvLinkRemotePciInfo_v2, @function
nvmlDeviceGetNvLinkRemotePciInfo_v2:
	endbr64
	jmp *velocpy_nvml_table+1216(%rip)
	.size nvmlDeviceGetNvLinkRemotePciInfo_v2, .-nvmlDeviceGetNvLinkRemotePciInfo_v2
	.globl nvmlDeviceGetNvLinkState
	.hidden nvmlDeviceGetNvLinkState
	.type nvmlDeviceGetNvLinkState, @function
nvmlDeviceGetNvLinkState:
	endbr64
	jmp *velocpy_nvml_table+1224(%rip)
	.size nvmlDeviceGetNvLinkState, .-nvmlDeviceGetNvLinkState
	.globl nvmlDeviceGetNvLinkUtilizationControl
	.hidden nvmlDeviceGetNvLinkUtilizationControl
	.type nvmlDeviceGetNvLinkUtilizationControl, @function
nvmlDeviceGetNvLinkUtilizationControl:
	endbr64
	jmp *velocpy_nvml_table+1232(%rip)
	.size nvmlDeviceGetNvLinkUtilizationControl, .-nvmlDeviceGetNvLinkUtilizationControl
	.globl nvmlDeviceGetNvLinkUtilizationCounter
	.hidden nvmlDeviceGetNvLinkUtilizationCounter
	.type nvmlDeviceGetNvLinkUtilizationCounter, @function
nvmlDeviceGetNvLinkUtilizationCounter:
	endbr64
	jmp *velocpy_nvml_table+1240(%rip)
	.size nvmlDeviceGetNvLinkUtilizationCounter, .-nvmlDeviceGetNvLinkUtilizationCounter
	.globl nvmlDeviceGetNvLinkVersion
	.hidden nvmlDeviceGetNvLinkVersion
	.type nvmlDeviceGetNvLinkVersion, @function
nvmlDeviceGetNvLinkVersion:
	endbr64
	jmp *velocpy_nvml_table+1248(%rip)
	.size nvmlDeviceGetNvLinkVersion, .-nvmlDeviceGetNvLinkVersion
	.globl nvmlDeviceGetNvlinkBwMode
	.hidden nvmlDeviceGetNvlinkBwMode
	.type nvmlDeviceGetNvlinkBwMode, @function
nvmlDeviceGetNvlinkBwMode:
	endbr64
	jmp *velocpy_nvml_table+1256(%rip)
	.size nvmlDeviceGetNvlinkBwMode, .-nvmlDeviceGetNvlinkBwMode
	.globl nvmlDeviceGetNvlinkSupportedBwModes
	.hidden nvmlDeviceGetNvlinkSupportedBwModes
	.type nvmlDeviceGetNvlinkSupportedBwModes, @function
nvmlDeviceGetNvlinkSupportedBwModes:
	endbr64
	jmp *velocpy_nvml_table+1264(%rip)
	.size nvmlDeviceGetNvlinkSupportedBwModes, .-nvmlDeviceGetNvlinkSupportedBwModes
	.globl nvmlDeviceGetOfaUtilization
	.hidden nvmlDeviceGetOfaUtilization
	.type nvmlDeviceGetOfaUtilization, @function
nvmlDeviceGetOfaUtilization:
	endbr64
	jmp *velocpy_nvml_table+1272(%rip)
	.size nvmlDeviceGetOfaUtilization, .-nvmlDeviceGetOfaUtilization
	.globl nvmlDeviceGetP2PStatus
	.hidden nvmlDeviceGetP2PStatus
	.type nvmlDeviceGetP2PStatus, @function
nvmlDeviceGetP2PStatus:
	endbr64
	jmp *velocpy_nvml_table+1280(%rip)
	.size nvmlDeviceGetP2PStatus, .-nvmlDeviceGetP2PStatus
	.globl nvmlDeviceGetPciInfo
	.hidden nvmlDeviceGetPciInfo
	.type nvmlDeviceGetPciInfo, @function
nvmlDeviceGetPciInfo:
	endbr64
	jmp *velocpy_nvml_table+1288(%rip)
	.size nvmlDeviceGetPciInfo, .-nvmlDeviceGetPciInfo
	.globl nvmlDeviceGetPciInfoExt
	.hidden nvmlDeviceGetPciInfoExt
	.type nvmlDeviceGetPciInfoExt, @function
nvmlDeviceGetPciInfoExt:
	endbr64
	jmp *velocpy_nvml_table+1296(%rip)
	.size nvmlDeviceGetPciInfoExt, .-nvmlDeviceGetPciInfoExt
	.globl nvmlDeviceGetPciInfo_v2
	.hidden nvmlDeviceGetPciInfo_v2
	.type nvmlDeviceGetPciInfo_v2, @function
nvmlDeviceGetPciInfo_v2:
	endbr64
	jmp *velocpy_nvml_table+1304(%rip)
	.size nvmlDeviceGetPciInfo_v2, .-nvmlDeviceGetPciInfo_v2
	.globl nvmlDeviceGetPciInfo_v3
	.hidden nvmlDeviceGetPciInfo_v3
	.type nvmlDeviceGetPciInfo_v3, @function
nvmlDeviceGetPciInfo_v3:
	endbr64
	jmp *velocpy_nvml_table+1312(%rip)
	.size nvmlDeviceGetPciInfo_v3, .-nvmlDeviceGetPciInfo_v3
	.globl nvmlDeviceGetPcieLinkMaxSpeed
	.hidden nvmlDeviceGetPcieLinkMaxSpeed
	.type nvmlDeviceGetPcieLinkMaxSpeed, @function
nvmlDeviceGetPcieLinkMaxSpeed:
	endbr64
	jmp *velocpy_nvml_table+1320(%rip)
	.size nvmlDeviceGetPcieLinkMaxSpeed, .-nvmlDeviceGetPcieLinkMaxSpeed
	.globl nvmlDeviceGetPcieReplayCounter
	.hidden nvmlDeviceGetPcieReplayCounter
	.type nvmlDeviceGetPcieReplayCounter, @function
nvmlDeviceGetPcieReplayCounter:
	endbr64
	jmp *velocpy_nvml_table+1328(%rip)
	.size nvmlDeviceGetPcieReplayCounter, .-nvmlDeviceGetPcieReplayCounter
	.globl nvmlDeviceGetPcieSpeed
	.hidden nvmlDeviceGetPcieSpeed
	.type nvmlDeviceGetPcieSpeed, @function
nvmlDeviceGetPcieSpeed:
	endbr64
	jmp *velocpy_nvml_table+1336(%rip)
	.size nvmlDeviceGetPcieSpeed, .-nvmlDeviceGetPcieSpeed
	.globl nvmlDeviceGetPcieThroughput
	.hidden nvmlDeviceGetPcieThroughput
	.type nvmlDeviceGetPcieThroughput, @function
nvmlDeviceGetPcieThroughput:
	endbr64
	jmp *velocpy_nvml_table+1344(%rip)
	.size nvmlDeviceGetPcieThroughput, .-nvmlDeviceGetPcieThroughput
	.globl nvmlDeviceGetPdi
	.hidden nvmlDeviceGetPdi
	.type nvmlDeviceGetPdi, @function
nvmlDeviceGetPdi:
	endbr64
	jmp *velocpy_nvml_table+1352(%rip)
	.size nvmlDeviceGetPdi, .-nvmlDeviceGetPdi
	.globl nvmlDeviceGetPerformanceModes
	.hidden nvmlDeviceGetPerformanceModes
	.type nvmlDeviceGetPerformanceModes, @function
nvmlDeviceGetPerformanceModes:
	endbr64
	jmp *velocpy_nvml_table+1360(%rip)
	.size nvmlDeviceGetPerformanceModes, .-nvmlDeviceGetPerformanceModes
	.globl nvmlDeviceGetPerformanceState
	.hidden nvmlDeviceGetPerformanceState
	.type nvmlDeviceGetPerformanceState, @function
nvmlDeviceGetPerformanceState:
	endbr64
	jmp *velocpy_nvml_table+1368(%rip)
	.size nvmlDeviceGetPerformanceState, .-nvmlDeviceGetPerformanceState
	.globl nvmlDeviceGetPersistenceMode
	.hidden nvmlDeviceGetPersistenceMode
	.type nvmlDeviceGetPersistenceMode, @function
nvmlDeviceGetPersistenceMode:
	endbr64
	jmp *velocpy_nvml_table+1376(%rip)
	.size nvmlDeviceGetPersistenceMode, .-nvmlDeviceGetPersistenceMode
	.globl nvmlDeviceGetPgpuMetadataString
	.hidden nvmlDeviceGetPgpuMetadataString
	.type nvmlDeviceGetPgpuMetadataString, @function
nvmlDeviceGetPgpuMetadataString:
	endbr64
	jmp *velocpy_nvml_table+1384(%rip)
	.size nvmlDeviceGetPgpuMetadataString, .-nvmlDeviceGetPgpuMetadataString
	.globl nvmlDeviceGetPlatformInfo
	.hidden nvmlDeviceGetPlatformInfo
	.type nvmlDeviceGetPlatformInfo, @function
nvmlDeviceGetPlatformInfo:
	endbr64
	jmp *velocpy_nvml_table+1392(%rip)
	.size nvmlDeviceGetPlatformInfo, .-nvmlDeviceGetPlatformInfo
	.globl nvmlDeviceGetPowerManagementDefaultLimit
	.hidden nvmlDeviceGetPowerManagementDefaultLimit
	.type nvmlDeviceGetPowerManagementDefaultLimit, @function
nvmlDeviceGetPowerManagementDefaultLimit:
	endbr64
	jmp *velocpy_nvml_table+1400(%rip)
	.size nvmlDeviceGetPowerManagementDefaultLimit, .-nvmlDeviceGetPowerManagementDefaultLimit
	.globl nvmlDeviceGetPowerManagementLimit
	.hidden nvmlDeviceGetPowerManagementLimit
	.type nvmlDeviceGetPowerManagementLimit, @function
nvmlDeviceGetPowerManagementLimit:
	endbr64
	jmp *velocpy_nvml_table+1408(%rip)
	.size nvmlDeviceGetPowerManagementLimit, .-nvmlDeviceGetPowerManagementLimit
	.globl nvmlDeviceGetPowerManagementLimitConstraints
	.hidden nvmlDeviceGetPowerManagementLimitConstraints
	.type nvmlDeviceGetPowerManagementLimitConstraints, @function
nvmlDeviceGetPowerManagementLimitConstraints:
	endbr64
	jmp *velocpy_nvml_table+1416(%rip)
	.size nvmlDeviceGetPowerManagementLimitConstraints, .-nvmlDeviceGetPowerManagementLimitConstraints
	.globl nvmlDeviceGetPowerManagementMode
	.hidden nvmlDeviceGetPowerManagementMode
	.type nvmlDeviceGetPowerManagementMode, @function
nvmlDeviceGetPowerManagementMode:
	endbr64
	jmp *velocpy_nvml_table+1424(%rip)
	.size nvmlDeviceGetPowerManagementMode, .-nvmlDeviceGetPowerManagementMode
	.globl nvmlDeviceGetPowerMizerMode_v1
	.hidden nvmlDeviceGetPowerMizerMode_v1
	.type nvmlDeviceGetPowerMizerMode_v1, @function
nvmlDeviceGetPowerMizerMode_v1:
	endbr64
	jmp *velocpy_nvml_table+1432(%rip)
	.size nvmlDeviceGetPowerMizerMode_v1, .-nvmlDeviceGetPowerMizerMode_v1
	.globl nvmlDeviceGetPowerSource
	.hidden nvmlDeviceGetPowerSource
	.type nvmlDeviceGetPowerSource, @function
nvmlDeviceGetPowerSource:
	endbr64
	jmp *velocpy_nvml_table+1440(%rip)
	.size nvmlDeviceGetPowerSource, .-nvmlDeviceGetPowerSource
	.globl nvmlDeviceGetPowerState
	.hidden nvmlDeviceGetPowerState
	.type nvmlDeviceGetPowerState, @function
nvmlDeviceGetPowerState:
	endbr64
	jmp *velocpy_nvml_table+1448(%rip)
	.size nvmlDeviceGetPowerState, .-nvmlDeviceGetPowerState
	.globl nvmlDeviceGetPowerUsage
	.hidden nvmlDeviceGetPowerUsage
	.type nvmlDeviceGetPowerUsage, @function
nvmlDeviceGetPowerUsage:
	endbr64
	jmp *velocpy_nvml_table+1456(%rip)
	.size nvmlDeviceGetPowerUsage, .-nvmlDeviceGetPowerUsage
	.globl nvmlDeviceGetProcessUtilization
	.hidden nvmlDeviceGetProcessUtilization
	.type nvmlDeviceGetProcessUtilization, @function
nvmlDeviceGetProcessUtilization:
	endbr64
	jmp *velocpy_nvml_table+1464(%rip)
	.size nvmlDeviceGetProcessUtilization, .-nvmlDeviceGetProcessUtilization
	.globl nvmlDeviceGetProcessesUtilizationInfo
	.hidden nvmlDeviceGetProcessesUtilizationInfo
	.type nvmlDeviceGetProcessesUtilizationInfo, @function
nvmlDeviceGetProcessesUtilizationInfo:
	endbr64
	jmp *velocpy_nvml_table+1472(%rip)
	.size nvmlDeviceGetProcessesUtilizationInfo, .-nvmlDeviceGetProcessesUtilizationInfo
	.globl nvmlDeviceGetRemappedRows
	.hidden nvmlDeviceGetRemappedRows
	.type nvmlDeviceGetRemappedRows, @function
nvmlDeviceGetRemappedRows:
	endbr64
	jmp *velocpy_nvml_table+1480(%rip)
	.size nvmlDeviceGetRemappedRows, .-nvmlDeviceGetRemappedRows
	.globl nvmlDeviceGetRepairStatus
	.hidden nvmlDeviceGetRepairStatus
	.type nvmlDeviceGetRepairStatus, @function
nvmlDeviceGetRepairStatus:
	endbr64
	jmp *velocpy_nvml_table+1488(%rip)
	.size nvmlDeviceGetRepairStatus, .-nvmlDeviceGetRepairStatus
	.globl nvmlDeviceGetRetiredPages
	.hidden nvmlDeviceGetRetiredPages
	.type nvmlDeviceGetRetiredPages, @function
nvmlDeviceGetRetiredPages:
	endbr64
	jmp *velocpy_nvml_table+1496(%rip)
	.size nvmlDeviceGetRetiredPages, .-nvmlDeviceGetRetiredPages
	.globl nvmlDeviceGetRetiredPagesPendingStatus
	.hidden nvmlDeviceGetRetiredPagesPendingStatus
	.type nvmlDeviceGetRetiredPagesPendingStatus, @function
nvmlDeviceGetRetiredPagesPendingStatus:
	endbr64
	jmp *velocpy_nvml_table+1504(%rip)
	.size nvmlDeviceGetRetiredPagesPendingStatus, .-nvmlDeviceGetRetiredPagesPendingStatus
	.globl nvmlDeviceGetRetiredPages_v2
	.hidden nvmlDeviceGetRetiredPages_v2
	.type nvmlDeviceGetRetiredPages_v2, @function
nvmlDeviceGetRetiredPages_v2:
	endbr64
	jmp *velocpy_nvml_table+1512(%rip)
	.size nvmlDeviceGetRetiredPages_v2, .-nvmlDeviceGetRetiredPages_v2
	.globl nvmlDeviceGetRowRemapperHistogram
	.hidden nvmlDeviceGetRowRemapperHistogram
	.type nvmlDeviceGetRowRemapperHistogram, @function
nvmlDeviceGetRowRemapperHistogram:
	endbr64
	jmp *velocpy_nvml_table+1520(%rip)
	.size nvmlDeviceGetRowRemapperHistogram, .-nvmlDeviceGetRowRemapperHistogram
	.globl nvmlDeviceGetRunningProcessDetailList
	.hidden nvmlDeviceGetRunningProcessDetailList
	.type nvmlDeviceGetRunningProcessDetailList, @function
nvmlDeviceGetRunningProcessDetailList:
	endbr64
	jmp *velocpy_nvml_table+1528(%rip)
	.size nvmlDeviceGetRunningProcessDetailList, .-nvmlDeviceGetRunningProcessDetailList
	.globl nvmlDeviceGetSamples
	.hidden nvmlDeviceGetSamples
	.type nvmlDeviceGetSamples, @function
nvmlDeviceGetSamples:
	endbr64
	jmp *velocpy_nvml_table+1536(%rip)
	.size nvmlDeviceGetSamples, .-nvmlDeviceGetSamples
	.globl nvmlDeviceGetSerial
	.hidden nvmlDeviceGetSerial
	.type nvmlDeviceGetSerial, @function
nvmlDeviceGetSerial:
	endbr64
	jmp *velocpy_nvml_table+1544(%rip)
	.size nvmlDeviceGetSerial, .-nvmlDeviceGetSerial
	.globl nvmlDeviceGetSramEccErrorStatus
	.hidden nvmlDeviceGetSramEccErrorStatus
	.type nvmlDeviceGetSramEccErrorStatus, @function
nvmlDeviceGetSramEccErrorStatus:
	endbr64
	jmp *velocpy_nvml_table+1552(%rip)
	.size nvmlDeviceGetSramEccErrorStatus, .-nvmlDeviceGetSramEccErrorStatus
	.globl nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
	.hidden nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
	.type nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, @function
nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts:
	endbr64
	jmp *velocpy_nvml_table+1560(%rip)
	.size nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, .-nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
	.globl nvmlDeviceGetSupportedClocksEventReasons
	.hidden nvmlDeviceGetSupportedClocksEventReasons
	.type nvmlDeviceGetSupportedClocksEventReasons, @function
nvmlDeviceGetSupportedClocksEventReasons:
	endbr64
	jmp *velocpy_nvml_table+1568(%rip)
	.size nvmlDeviceGetSupportedClocksEventReasons, .-nvmlDeviceGetSupportedClocksEventReasons
	.globl nvmlDeviceGetSupportedClocksThrottleReasons
	.hidden nvmlDeviceGetSupportedClocksThrottleReasons
	.type nvmlDeviceGetSupportedClocksThrottleReasons, @function
nvmlDeviceGetSupportedClocksThrottleReasons:
	endbr64
	jmp *velocpy_nvml_table+1576(%rip)
	.size nvmlDeviceGetSupportedClocksThrottleReasons, .-nvmlDeviceGetSupportedClocksThrottleReasons
	.globl nvmlDeviceGetSupportedEventTypes
	.hidden nvmlDeviceGetSupportedEventTypes
	.type nvmlDeviceGetSupportedEventTypes, @function
nvmlDeviceGetSupportedEventTypes:
	endbr64
	jmp *velocpy_nvml_table+1584(%rip)
	.size nvmlDeviceGetSupportedEventTypes, .-nvmlDeviceGetSupportedEventTypes
	.globl nvmlDeviceGetSupportedGraphicsClocks
	.hidden nvmlDeviceGetSupportedGraphicsClocks
	.type nvmlDeviceGetSupportedGraphicsClocks, @function
nvmlDeviceGetSupportedGraphicsClocks:
	endbr64
	jmp *velocpy_nvml_table+1592(%rip)
	.size nvmlDeviceGetSupportedGraphicsClocks, .-nvmlDeviceGetSupportedGraphicsClocks
	.globl nvmlDeviceGetSupportedMemoryClocks
	.hidden nvmlDeviceGetSupportedMemoryClocks
	.type nvmlDeviceGetSupportedMemoryClocks, @function
nvmlDeviceGetSupportedMemoryClocks:
	endbr64
	jmp *velocpy_nvml_table+1600(%rip)
	.size nvmlDeviceGetSupportedMemoryClocks, .-nvmlDeviceGetSupportedMemoryClocks
	.globl nvmlDeviceGetSupportedPerformanceStates
	.hidden nvmlDeviceGetSupportedPerformanceStates
	.type nvmlDeviceGetSupportedPerformanceStates, @function
nvmlDeviceGetSupportedPerformanceStates:
	endbr64
	jmp *velocpy_nvml_table+1608(%rip)
	.size nvmlDeviceGetSupportedPerformanceStates, .-nvmlDeviceGetSupportedPerformanceStates
	.globl nvmlDeviceGetSupportedVgpus
	.hidden nvmlDeviceGetSupportedVgpus
	.type nvmlDeviceGetSupportedVgpus, @function
nvmlDeviceGetSupportedVgpus:
	endbr64
	jmp *velocpy_nvml_table+1616(%rip)
	.size nvmlDeviceGetSupportedVgpus, .-nvmlDeviceGetSupportedVgpus
	.globl nvmlDeviceGetTargetFanSpeed
	.hidden nvmlDeviceGetTargetFanSpeed
	.type nvmlDeviceGetTargetFanSpeed, @function
nvmlDeviceGetTargetFanSpeed:
	endbr64
	jmp *velocpy_nvml_table+1624(%rip)
	.size nvmlDeviceGetTargetFanSpeed, .-nvmlDeviceGetTargetFanSpeed
	.globl nvmlDeviceGetTemperature
	.hidden nvmlDeviceGetTemperature
	.type nvmlDeviceGetTemperature, @function
nvmlDeviceGetTemperature:
	endbr64
	jmp *velocpy_nvml_table+1632(%rip)
	.size nvmlDeviceGetTemperature, .-nvmlDeviceGetTemperature
	.globl nvmlDeviceGetTemperatureThreshold
	.hidden nvmlDeviceGetTemperatureThreshold
	.type nvmlDeviceGetTemperatureThreshold, @function
nvmlDeviceGetTemperatureThreshold:
	endbr64
	jmp *velocpy_nvml_table+1640(%rip)
	.size nvmlDeviceGetTemperatureThreshold, .-nvmlDeviceGetTemperatureThreshold
	.globl nvmlDeviceGetTemperatureV
	.hidden nvmlDeviceGetTemperatureV
	.type nvmlDeviceGetTemperatureV, @function
nvmlDeviceGetTemperatureV:
	endbr64
	jmp *velocpy_nvml_table+1648(%rip)
	.size nvmlDeviceGetTemperatureV, .-nvmlDeviceGetTemperatureV
	.globl nvmlDeviceGetThermalSettings
	.hidden nvmlDeviceGetThermalSettings
	.type nvmlDeviceGetThermalSettings, @function
nvmlDeviceGetThermalSettings:
	endbr64
	jmp *velocpy_nvml_table+1656(%rip)
	.size nvmlDeviceGetThermalSettings, .-nvmlDeviceGetThermalSettings
	.globl nvmlDeviceGetTopologyCommonAncestor
	.hidden nvmlDeviceGetTopologyCommonAncestor
	.type nvmlDeviceGetTopologyCommonAncestor, @function
nvmlDeviceGetTopologyCommonAncestor:
	endbr64
	jmp *velocpy_nvml_table+1664(%rip)
	.size nvmlDeviceGetTopologyCommonAncestor, .-nvmlDeviceGetTopologyCommonAncestor
	.globl nvmlDeviceGetTopologyNearestGpus
	.hidden nvmlDeviceGetTopologyNearestGpus
	.type nvmlDeviceGetTopologyNearestGpus, @function
nvmlDeviceGetTopologyNearestGpus:
	endbr64
	jmp *velocpy_nvml_table+1672(%rip)
	.size nvmlDeviceGetTopologyNearestGpus, .-nvmlDeviceGetTopologyNearestGpus
	.globl nvmlDeviceGetTotalEccErrors
	.hidden nvmlDeviceGetTotalEccErrors
	.type nvmlDeviceGetTotalEccErrors, @function
nvmlDeviceGetTotalEccErrors:
	endbr64
	jmp *velocpy_nvml_table+1680(%rip)
	.size nvmlDeviceGetTotalEccErrors, .-nvmlDeviceGetTotalEccErrors
	.globl nvmlDeviceGetTotalEnergyConsumption
	.hidden nvmlDeviceGetTotalEnergyConsumption
	.type nvmlDeviceGetTotalEnergyConsumption, @function
nvmlDeviceGetTotalEnergyConsumption:
	endbr64
	jmp *velocpy_nvml_table+1688(%rip)
	.size nvmlDeviceGetTotalEnergyConsumption, .-nvmlDeviceGetTotalEnergyConsumption
	.globl nvmlDeviceGetUUID
	.hidden nvmlDeviceGetUUID
	.type nvmlDeviceGetUUID, @function
nvmlDeviceGetUUID:
	endbr64
	jmp *velocpy_nvml_table+1696(%rip)
	.size nvmlDeviceGetUUID, .-nvmlDeviceGetUUID
	.globl nvmlDeviceGetUtilizationRates
	.hidden nvmlDeviceGetUtilizationRates
	.type nvmlDeviceGetUtilizationRates, @function
nvmlDeviceGetUtilizationRates:
	endbr64
	jmp *velocpy_nvml_table+1704(%rip)
	.size nvmlDeviceGetUtilizationRates, .-nvmlDeviceGetUtilizationRates
	.globl nvmlDeviceGetVbiosVersion
	.hidden nvmlDeviceGetVbiosVersion
	.type nvmlDeviceGetVbiosVersion, @function
nvmlDeviceGetVbiosVersion:
	endbr64
	jmp *velocpy_nvml_table+1712(%rip)
	.size nvmlDeviceGetVbiosVersion, .-nvmlDeviceGetVbiosVersion
	.globl nvmlDeviceGetVgpuCapabilities
	.hidden nvmlDeviceGetVgpuCapabilities
	.type nvmlDeviceGetVgpuCapabilities, @function
nvmlDeviceGetVgpuCapabilities:
	endbr64
	jmp *velocpy_nvml_table+1720(%rip)
	.size nvmlDeviceGetVgpuCapabilities, .-nvmlDeviceGetVgpuCapabilities
	.globl nvmlDeviceGetVgpuHeterogeneousMode
	.hidden nvmlDeviceGetVgpuHeterogeneousMode
	.type nvmlDeviceGetVgpuHeterogeneousMode, @function
nvmlDeviceGetVgpuHeterogeneousMode:
	endbr64
	jmp *velocpy_nvml_table+1728(%rip)
	.size nvmlDeviceGetVgpuHeterogeneousMode, .-nvmlDeviceGetVgpuHeterogeneousMode
	.globl nvmlDeviceGetVgpuInstancesUtilizationInfo
	.hidden nvmlDeviceGetVgpuInstancesUtilizationInfo
	.type nvmlDeviceGetVgpuInstancesUtilizationInfo, @function
nvmlDeviceGetVgpuInstancesUtilizationInfo:
	endbr64
	jmp *velocpy_nvml_table+1736(%rip)
	.size nvmlDeviceGetVgpuInstancesUtilizationInfo, .-nvmlDeviceGetVgpuInstancesUtilizationInfo
	.globl nvmlDeviceGetVgpuMetadata
	.hidden nvmlDeviceGetVgpuMetadata
	.type nvmlDeviceGetVgpuMetadata, @function
nvmlDeviceGetVgpuMetadata:
	endbr64
	jmp *velocpy_nvml_table+1744(%rip)
	.size nvmlDeviceGetVgpuMetadata, .-nvmlDeviceGetVgpuMetadata
	.globl nvmlDeviceGetVgpuProcessUtilization
	.hidden nvmlDeviceGetVgpuProcessUtilization
	.type nvmlDeviceGetVgpuProcessUtilization, @function
nvmlDeviceGetVgpuProcessUtilization:
	endbr64
	jmp *velocpy_nvml_table+1752(%rip)
	.size nvmlDeviceGetVgpuProcessUtilization, .-nvmlDeviceGetVgpuProcessUtilization
	.globl nvmlDeviceGetVgpuProcessesUtilizationInfo
	.hidden nvmlDeviceGetVgpuProcessesUtilizationInfo
	.type nvmlDeviceGetVgpuProcessesUtilizationInfo, @function
nvmlDeviceGetVgpuProcessesUtilizationInfo:
	endbr64
	jmp *velocpy_nvml_table+1760(%rip)
	.size nvmlDeviceGetVgpuProcessesUtilizationInfo, .-nvmlDeviceGetVgpuProcessesUtilizationInfo
	.globl nvmlDeviceGetVgpuSchedulerCapabilities
	.hidden nvmlDeviceGetVgpuSchedulerCapabilities
	.type nvmlDeviceGetVgpuSchedulerCapabilities, @function
nvmlDeviceGetVgpuSchedulerCapabilities:
	endbr64
	jmp *velocpy_nvml_table+1768(%rip)
	.size nvmlDeviceGetVgpuSchedulerCapabilities, .-nvmlDeviceGetVgpuSchedulerCapabilities
	.globl nvmlDeviceGetVgpuSchedulerLog
	.hidden nvmlDeviceGetVgpuSchedulerLog
	.type nvmlDeviceGetVgpuSchedulerLog, @function
nvmlDeviceGetVgpuSchedulerLog:
	endbr64
	jmp *velocpy_nvml_table+1776(%rip)
	.size nvmlDeviceGetVgpuSchedulerLog, .-nvmlDeviceGetVgpuSchedulerLog
	.globl nvmlDeviceGetVgpuSchedulerState
	.hidden nvmlDeviceGetVgpuSchedulerState
	.type nvmlDeviceGetVgpuSchedulerState, @function
nvmlDeviceGetVgpuSchedulerState:
	endbr64
	jmp *velocpy_nvml_table+1784(%rip)
	.size nvmlDeviceGetVgpuSchedulerState, .-nvmlDeviceGetVgpuSchedulerState
	.globl nvmlDeviceGetVgpuTypeCreatablePlacements
	.hidden nvmlDeviceGetVgpuTypeCreatablePlacements
	.type nvmlDeviceGetVgpuTypeCreatablePlacements, @function
nvmlDeviceGetVgpuTypeCreatablePlacements:
	endbr64
	jmp *velocpy_nvml_table+1792(%rip)
	.size nvmlDeviceGetVgpuTypeCreatablePlacements, .-nvmlDeviceGetVgpuTypeCreatablePlacements
	.globl nvmlDeviceGetVgpuTypeSupportedPlacements
	.hidden nvmlDeviceGetVgpuTypeSupportedPlacements
	.type nvmlDeviceGetVgpuTypeSupportedPlacements, @function
nvmlDeviceGetVgpuTypeSupportedPlacements:
	endbr64
	jmp *velocpy_nvml_table+1800(%rip)
	.size nvmlDeviceGetVgpuTypeSupportedPlacements, .-nvmlDeviceGetVgpuTypeSupportedPlacements
	.globl nvmlDeviceGetVgpuUtilization
	.hidden nvmlDeviceGetVgpuUtilization
	.type nvmlDeviceGetVgpuUtilization, @function
nvmlDeviceGetVgpuUtilization:
	endbr64
	jmp *velocpy_nvml_table+1808(%rip)
	.size nvmlDeviceGetVgpuUtilization, .-nvmlDeviceGetVgpuUtilization
	.globl nvmlDeviceGetViolationStatus
	.hidden nvmlDeviceGetViolationStatus
	.type nvmlDeviceGetViolationStatus, @function
nvmlDeviceGetViolationStatus:
	endbr64
	jmp *velocpy_nvml_table+1816(%rip)
	.size nvmlDeviceGetViolationStatus, .-nvmlDeviceGetViolationStatus
	.globl nvmlDeviceGetVirtualizationMode
	.hidden nvmlDeviceGetVirtualizationMode
	.type nvmlDeviceGetVirtualizationMode, @function
nvmlDeviceGetVirtualizationMode:
	endbr64
	jmp *velocpy_nvml_table+1824(%rip)
	.size nvmlDeviceGetVirtualizationMode, .-nvmlDeviceGetVirtualizationMode
	.globl nvmlDeviceIsMigDeviceHandle
	.hidden nvmlDeviceIsMigDeviceHandle
	.type nvmlDeviceIsMigDeviceHandle, @function
nvmlDeviceIsMigDeviceHandle:
	endbr64
	jmp *velocpy_nvml_table+1832(%rip)
	.size nvmlDeviceIsMigDeviceHandle, .-nvmlDeviceIsMigDeviceHandle
	.globl nvmlDeviceModifyDrainState
	.hidden nvmlDeviceModifyDrainState
	.type nvmlDeviceModifyDrainState, @function
nvmlDeviceModifyDrainState:
	endbr64
	jmp *velocpy_nvml_table+1840(%rip)
	.size nvmlDeviceModifyDrainState, .-nvmlDeviceModifyDrainState
	.globl nvmlDeviceOnSameBoard
	.hidden nvmlDeviceOnSameBoard
	.type nvmlDeviceOnSameBoard, @function
nvmlDeviceOnSameBoard:
	endbr64
	jmp *velocpy_nvml_table+1848(%rip)
	.size nvmlDeviceOnSameBoard, .-nvmlDeviceOnSameBoard
	.globl nvmlDevicePowerSmoothingActivatePresetProfile
	.hidden nvmlDevicePowerSmoothingActivatePresetProfile
	.type nvmlDevicePowerSmoothingActivatePresetProfile, @function
nvmlDevicePowerSmoothingActivatePresetProfile:
	endbr64
	jmp *velocpy_nvml_table+1856(%rip)
	.size nvmlDevicePowerSmoothingActivatePresetProfile, .-nvmlDevicePowerSmoothingActivatePresetProfile
	.globl nvmlDevicePowerSmoothingSetState
	.hidden nvmlDevicePowerSmoothingSetState
	.type nvmlDevicePowerSmoothingSetState, @function
nvmlDevicePowerSmoothingSetState:
	endbr64
	jmp *velocpy_nvml_table+1864(%rip)
	.size nvmlDevicePowerSmoothingSetState, .-nvmlDevicePowerSmoothingSetState
	.globl nvmlDevicePowerSmoothingUpdatePresetProfileParam
	.hidden nvmlDevicePowerSmoothingUpdatePresetProfileParam
	.type nvmlDevicePowerSmoothingUpdatePresetProfileParam, @function
nvmlDevicePowerSmoothingUpdatePresetProfileParam:
	endbr64
	jmp *velocpy_nvml_table+1872(%rip)
	.size nvmlDevicePowerSmoothingUpdatePresetProfileParam, .-nvmlDevicePowerSmoothingUpdatePresetProfileParam
	.globl nvmlDeviceQueryDrainState
	.hidden nvmlDeviceQueryDrainState
	.type nvmlDeviceQueryDrainState, @function
nvmlDeviceQueryDrainState:
	endbr64
	jmp *velocpy_nvml_table+1880(%rip)
	.size nvmlDeviceQueryDrainState, .-nvmlDeviceQueryDrainState
	.globl nvmlDeviceReadWritePRM_v1
	.hidden nvmlDeviceReadWritePRM_v1
	.type nvmlDeviceReadWritePRM_v1, @function
nvmlDeviceReadWritePRM_v1:
	endbr64
	jmp *velocpy_nvml_table+1888(%rip)
	.size nvmlDeviceReadWritePRM_v1, .-nvmlDeviceReadWritePRM_v1
	.globl nvmlDeviceRegisterEvents
	.hidden nvmlDeviceRegisterEvents
	.type nvmlDeviceRegisterEvents, @function
nvmlDeviceRegisterEvents:
	endbr64
	jmp *velocpy_nvml_table+1896(%rip)
	.size nvmlDeviceRegisterEvents, .-nvmlDeviceRegisterEvents
	.globl nvmlDeviceRemoveGpu
	.hidden nvmlDeviceRemoveGpu
	.type nvmlDeviceRemoveGpu, @function
nvmlDeviceRemoveGpu:
	endbr64
	jmp *velocpy_nvml_table+1904(%rip)
	.size nvmlDeviceRemoveGpu, .-nvmlDeviceRemoveGpu
	.globl nvmlDeviceRemoveGpu_v2
	.hidden nvmlDeviceRemoveGpu_v2
	.type nvmlDeviceRemoveGpu_v2, @function
nvmlDeviceRemoveGpu_v2:
	endbr64
	jmp *velocpy_nvml_table+1912(%rip)
	.size nvmlDeviceRemoveGpu_v2, .-nvmlDeviceRemoveGpu_v2
	.globl nvmlDeviceResetApplicationsClocks
	.hidden nvmlDeviceResetApplicationsClocks
	.type nvmlDeviceResetApplicationsClocks, @function
nvmlDeviceResetApplicationsClocks:
	endbr64
	jmp *velocpy_nvml_table+1920(%rip)
	.size nvmlDeviceResetApplicationsClocks, .-nvmlDeviceResetApplicationsClocks
	.globl nvmlDeviceResetGpuLockedClocks
	.hidden nvmlDeviceResetGpuLockedClocks
	.type nvmlDeviceResetGpuLockedClocks, @function
nvmlDeviceResetGpuLockedClocks:
	endbr64
	jmp *velocpy_nvml_table+1928(%rip)
	.size nvmlDeviceResetGpuLockedClocks, .-nvmlDeviceResetGpuLockedClocks
	.globl nvmlDeviceResetMemoryLockedClocks
	.hidden nvmlDeviceResetMemoryLockedClocks
	.type nvmlDeviceResetMemoryLockedClocks, @function
nvmlDeviceResetMemoryLockedClocks:
	endbr64
	jmp *velocpy_nvml_table+1936(%rip)
	.size nvmlDeviceResetMemoryLockedClocks, .-nvmlDeviceResetMemoryLockedClocks
	.globl nvmlDeviceResetNvLinkErrorCounters
	.hidden nvmlDeviceResetNvLinkErrorCounters
	.type nvmlDeviceResetNvLinkErrorCounters, @function
nvmlDeviceResetNvLinkErrorCounters:
	endbr64
	jmp *velocpy_nvml_table+1944(%rip)
	.size nvmlDeviceResetNvLinkErrorCounters, .-nvmlDeviceResetNvLinkErrorCounters
	.globl nvmlDeviceResetNvLinkUtilizationCounter
	.hidden nvmlDeviceResetNvLinkUtilizationCounter
	.type nvmlDeviceResetNvLinkUtilizationCounter, @function
nvmlDeviceResetNvLinkUtilizationCounter:
	endbr64
	jmp *velocpy_nvml_table+1952(%rip)
	.size nvmlDeviceResetNvLinkUtilizationCounter, .-nvmlDeviceResetNvLinkUtilizationCounter
	.globl nvmlDeviceSetAPIRestriction
	.hidden nvmlDeviceSetAPIRestriction
	.type nvmlDeviceSetAPIRestriction, @function
nvmlDeviceSetAPIRestriction:
	endbr64
	jmp *velocpy_nvml_table+1960(%rip)
	.size nvmlDeviceSetAPIRestriction, .-nvmlDeviceSetAPIRestriction
	.globl nvmlDeviceSetAccountingMode
	.hidden nvmlDeviceSetAccountingMode
	.type nvmlDeviceSetAccountingMode, @function
nvmlDeviceSetAccountingMode:
	endbr64
	jmp *velocpy_nvml_table+1968(%rip)
	.size nvmlDeviceSetAccountingMode, .-nvmlDeviceSetAccountingMode
	.globl nvmlDeviceSetApplicationsClocks
	.hidden nvmlDeviceSetApplicationsClocks
	.type nvmlDeviceSetApplicationsClocks, @function
nvmlDeviceSetApplicationsClocks:
	endbr64
	jmp *velocpy_nvml_table+1976(%rip)
	.size nvmlDeviceSetApplicationsClocks, .-nvmlDeviceSetApplicationsClocks
	.globl nvmlDeviceSetAutoBoostedClocksEnabled
	.hidden nvmlDeviceSetAutoBoostedClocksEnabled
	.type nvmlDeviceSetAutoBoostedClocksEnabled, @function
nvmlDeviceSetAutoBoostedClocksEnabled:
	endbr64
	jmp *velocpy_nvml_table+1984(%rip)
	.size nvmlDeviceSetAutoBoostedClocksEnabled, .-nvmlDeviceSetAutoBoostedClocksEnabled
	.globl nvmlDeviceSetClockOffsets
	.hidden nvmlDeviceSetClockOffsets
	.type nvmlDeviceSetClockOffsets, @function
nvmlDeviceSetClockOffsets:
	endbr64
	jmp *velocpy_nvml_table+1992(%rip)
	.size nvmlDeviceSetClockOffsets, .-nvmlDeviceSetClockOffsets
	.globl nvmlDeviceSetComputeMode
	.hidden nvmlDeviceSetComputeMode
	.type nvmlDeviceSetComputeMode, @function
nvmlDeviceSetComputeMode:
	endbr64
	jmp *velocpy_nvml_table+2000(%rip)
	.size nvmlDeviceSetComputeMode, .-nvmlDeviceSetComputeMode
	.globl nvmlDeviceSetConfComputeUnprotectedMemSize
	.hidden nvmlDeviceSetConfComputeUnprotectedMemSize
	.type nvmlDeviceSetConfComputeUnprotectedMemSize, @function
nvmlDeviceSetConfComputeUnprotectedMemSize:
	endbr64
	jmp *velocpy_nvml_table+2008(%rip)
	.size nvmlDeviceSetConfComputeUnprotectedMemSize, .-nvmlDeviceSetConfComputeUnprotectedMemSize
	.globl nvmlDeviceSetCpuAffinity
	.hidden nvmlDeviceSetCpuAffinity
	.type nvmlDeviceSetCpuAffinity, @function
nvmlDeviceSetCpuAffinity:
	endbr64
	jmp *velocpy_nvml_table+2016(%rip)
	.size nvmlDeviceSetCpuAffinity, .-nvmlDeviceSetCpuAffinity
	.globl nvmlDeviceSetDefaultAutoBoostedClocksEnabled
	.hidden nvmlDeviceSetDefaultAutoBoostedClocksEnabled
	.type nvmlDeviceSetDefaultAutoBoostedClocksEnabled, @function
nvmlDeviceSetDefaultAutoBoostedClocksEnabled:
	endbr64
	jmp *velocpy_nvml_table+2024(%rip)
	.size nvmlDeviceSetDefaultAutoBoostedClocksEnabled, .-nvmlDeviceSetDefaultAutoBoostedClocksEnabled
	.globl nvmlDeviceSetDefaultFanSpeed_v2
	.hidden nvmlDeviceSetDefaultFanSpeed_v2
	.type nvmlDeviceSetDefaultFanSpeed_v2, @function
nvmlDeviceSetDefaultFanSpeed_v2:
	endbr64
	jmp *velocpy_nvml_table+2032(%rip)
	.size nvmlDeviceSetDefaultFanSpeed_v2, .-nvmlDeviceSetDefaultFanSpeed_v2
	.globl nvmlDeviceSetDramEncryptionMode
	.hidden nvmlDeviceSetDramEncryptionMode
	.type nvmlDeviceSetDramEncryptionMode, @function
nvmlDeviceSetDramEncryptionMode:
	endbr64
	jmp *velocpy_nvml_table+2040(%rip)
	.size nvmlDeviceSetDramEncryptionMode, .-nvmlDeviceSetDramEncryptionMode
	.globl nvmlDeviceSetDriverModel
	.hidden nvmlDeviceSetDriverModel
	.type nvmlDeviceSetDriverModel, @function
nvmlDeviceSetDriverModel:
	endbr64
	jmp *velocpy_nvml_table+2048(%rip)
	.size nvmlDeviceSetDriverModel, .-nvmlDeviceSetDriverModel
	.globl nvmlDeviceSetEccMode
	.hidden nvmlDeviceSetEccMode
	.type nvmlDeviceSetEccMode, @function
nvmlDeviceSetEccMode:
	endbr64
	jmp *velocpy_nvml_table+2056(%rip)
	.size nvmlDeviceSetEccMode, .-nvmlDeviceSetEccMode
	.globl nvmlDeviceSetFanControlPolicy
	.hidden nvmlDeviceSetFanControlPolicy
	.type nvmlDeviceSetFanControlPolicy, @function
nvmlDeviceSetFanControlPolicy:
	endbr64
	jmp *velocpy_nvml_table+2064(%rip)
	.size nvmlDeviceSetFanControlPolicy, .-nvmlDeviceSetFanControlPolicy
	.globl nvmlDeviceSetFanSpeed_v2
	.hidden nvmlDeviceSetFanSpeed_v2
	.type nvmlDeviceSetFanSpeed_v2, @function
nvmlDeviceSetFanSpeed_v2:
	endbr64
	jmp *velocpy_nvml_table+2072(%rip)
	.size nvmlDeviceSetFanSpeed_v2, .-nvmlDeviceSetFanSpeed_v2
	.globl nvmlDeviceSetGpcClkVfOffset
	.hidden nvmlDeviceSetGpcClkVfOffset
	.type nvmlDeviceSetGpcClkVfOffset, @function
nvmlDeviceSetGpcClkVfOffset:
	endbr64
	jmp *velocpy_nvml_table+2080(%rip)
	.size nvmlDeviceSetGpcClkVfOffset, .-nvmlDeviceSetGpcClkVfOffset
	.globl nvmlDeviceSetGpuLockedClocks
	.hidden nvmlDeviceSetGpuLockedClocks
	.type nvmlDeviceSetGpuLockedClocks, @function
nvmlDeviceSetGpuLockedClocks:
	endbr64
	jmp *velocpy_nvml_table+2088(%rip)
	.size nvmlDeviceSetGpuLockedClocks, .-nvmlDeviceSetGpuLockedClocks
	.globl nvmlDeviceSetGpuOperationMode
	.hidden nvmlDeviceSetGpuOperationMode
	.type nvmlDeviceSetGpuOperationMode, @function
nvmlDeviceSetGpuOperationMode:
	endbr64
	jmp *velocpy_nvml_table+2096(%rip)
	.size nvmlDeviceSetGpuOperationMode, .-nvmlDeviceSetGpuOperationMode
	.globl nvmlDeviceSetMemClkVfOffset
	.hidden nvmlDeviceSetMemClkVfOffset
	.type nvmlDeviceSetMemClkVfOffset, @function
nvmlDeviceSetMemClkVfOffset:
	endbr64
	jmp *velocpy_nvml_table+2104(%rip)
	.size nvmlDeviceSetMemClkVfOffset, .-nvmlDeviceSetMemClkVfOffset
	.globl nvmlDeviceSetMemoryLockedClocks
	.hidden nvmlDeviceSetMemoryLockedClocks
	.type nvmlDeviceSetMemoryLockedClocks, @function
nvmlDeviceSetMemoryLockedClocks:
	endbr64
	jmp *velocpy_nvml_table+2112(%rip)
	.size nvmlDeviceSetMemoryLockedClocks, .-nvmlDeviceSetMemoryLockedClocks
	.globl nvmlDeviceSetMigMode
	.hidden nvmlDeviceSetMigMode
	.type nvmlDeviceSetMigMode, @function
nvmlDeviceSetMigMode:
	endbr64
	jmp *velocpy_nvml_table+2120(%rip)
	.size nvmlDeviceSetMigMode, .-nvmlDeviceSetMigMode
	.globl nvmlDeviceSetNvLinkDeviceLowPowerThreshold
	.hidden nvmlDeviceSetNvLinkDeviceLowPowerThreshold
	.type nvmlDeviceSetNvLinkDeviceLowPowerThreshold, @function
nvmlDeviceSetNvLinkDeviceLowPowerThreshold:
	endbr64
	jmp *velocpy_nvml_table+2128(%rip)
	.size nvmlDeviceSetNvLinkDeviceLowPowerThreshold, .-nvmlDeviceSetNvLinkDeviceLowPowerThreshold
	.globl nvmlDeviceSetNvLinkUtilizationControl
	.hidden nvmlDeviceSetNvLinkUtilizationControl
	.type nvmlDeviceSetNvLinkUtilizationControl, @function
nvmlDeviceSetNvLinkUtilizationControl:
	endbr64
	jmp *velocpy_nvml_table+2136(%rip)
	.size nvmlDeviceSetNvLinkUtilizationControl, .-nvmlDeviceSetNvLinkUtilizationControl
	.globl nvmlDeviceSetNvlinkBwMode
	.hidden nvmlDeviceSetNvlinkBwMode
	.type nvmlDeviceSetNvlinkBwMode, @function
nvmlDeviceSetNvlinkBwMode:
	endbr64
	jmp *velocpy_nvml_table+2144(%rip)
	.size nvmlDeviceSetNvlinkBwMode, .-nvmlDeviceSetNvlinkBwMode
	.globl nvmlDeviceSetPersistenceMode
	.hidden nvmlDeviceSetPersistenceMode
	.type nvmlDeviceSetPersistenceMode, @function
nvmlDeviceSetPersistenceMode:
	endbr64
	jmp *velocpy_nvml_table+2152(%rip)
	.size nvmlDeviceSetPersistenceMode, .-nvmlDeviceSetPersistenceMode
	.globl nvmlDeviceSetPowerManagementLimit
	.hidden nvmlDeviceSetPowerManagementLimit
	.type nvmlDeviceSetPowerManagementLimit, @function
nvmlDeviceSetPowerManagementLimit:
	endbr64
	jmp *velocpy_nvml_table+2160(%rip)
	.size nvmlDeviceSetPowerManagementLimit, .-nvmlDeviceSetPowerManagementLimit
	.globl nvmlDeviceSetPowerManagementLimit_v2
	.hidden nvmlDeviceSetPowerManagementLimit_v2
	.type nvmlDeviceSetPowerManagementLimit_v2, @function
nvmlDeviceSetPowerManagementLimit_v2:
	endbr64
	jmp *velocpy_nvml_table+2168(%rip)
	.size nvmlDeviceSetPowerManagementLimit_v2, .-nvmlDeviceSetPowerManagementLimit_v2
	.globl nvmlDeviceSetPowerMizerMode_v1
	.hidden nvmlDeviceSetPowerMizerMode_v1
	.type nvmlDeviceSetPowerMizerMode_v1, @function
nvmlDeviceSetPowerMizerMode_v1:
	endbr64
	jmp *velocpy_nvml_table+2176(%rip)
	.size nvmlDeviceSetPowerMizerMode_v1, .-nvmlDeviceSetPowerMizerMode_v1
	.globl nvmlDeviceSetTemperatureThreshold
	.hidden nvmlDeviceSetTemperatureThreshold
	.type nvmlDeviceSetTemperatureThreshold, @function
nvmlDeviceSetTemperatureThreshold:
	endbr64
	jmp *velocpy_nvml_table+2184(%rip)
	.size nvmlDeviceSetTemperatureThreshold, .-nvmlDeviceSetTemperatureThreshold
	.globl nvmlDeviceSetVgpuCapabilities
	.hidden nvmlDeviceSetVgpuCapabilities
	.type nvmlDeviceSetVgpuCapabilities, @function
nvmlDeviceSetVgpuCapabilities:
	endbr64
	jmp *velocpy_nvml_table+2192(%rip)
	.size nvmlDeviceSetVgpuCapabilities, .-nvmlDeviceSetVgpuCapabilities
	.globl nvmlDeviceSetVgpuHeterogeneousMode
	.hidden nvmlDeviceSetVgpuHeterogeneousMode
	.type nvmlDeviceSetVgpuHeterogeneousMode, @function
nvmlDeviceSetVgpuHeterogeneousMode:
	endbr64
	jmp *velocpy_nvml_table+2200(%rip)
	.size nvmlDeviceSetVgpuHeterogeneousMode, .-nvmlDeviceSetVgpuHeterogeneousMode
	.globl nvmlDeviceSetVgpuSchedulerState
	.hidden nvmlDeviceSetVgpuSchedulerState
	.type nvmlDeviceSetVgpuSchedulerState, @function
nvmlDeviceSetVgpuSchedulerState:
	endbr64
	jmp *velocpy_nvml_table+2208(%rip)
	.size nvmlDeviceSetVgpuSchedulerState, .-nvmlDeviceSetVgpuSchedulerState
	.globl nvmlDeviceSetVirtualizationMode
	.hidden nvmlDeviceSetVirtualizationMode
	.type nvmlDeviceSetVirtualizationMode, @function
nvmlDeviceSetVirtualizationMode:
	endbr64
	jmp *velocpy_nvml_table+2216(%rip)
	.size nvmlDeviceSetVirtualizationMode, .-nvmlDeviceSetVirtualizationMode
	.globl nvmlDeviceValidateInforom
	.hidden nvmlDeviceValidateInforom
	.type nvmlDeviceValidateInforom, @function
nvmlDeviceValidateInforom:
	endbr64
	jmp *velocpy_nvml_table+2224(%rip)
	.size nvmlDeviceValidateInforom, .-nvmlDeviceValidateInforom
	.globl nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
	.hidden nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
	.type nvmlDeviceWorkloadPowerProfileClearRequestedProfiles, @function
nvmlDeviceWorkloadPowerProfileClearRequestedProfiles:
	endbr64
	jmp *velocpy_nvml_table+2232(%rip)
	.size nvmlDeviceWorkloadPowerProfileClearRequestedProfiles, .-nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
	.globl nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
	.hidden nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
	.type nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, @function
nvmlDeviceWorkloadPowerProfileGetCurrentProfiles:
	endbr64
	jmp *velocpy_nvml_table+2240(%rip)
	.size nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, .-nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
	.globl nvmlDeviceWorkloadPowerProfileGetProfilesInfo
	.hidden nvmlDeviceWorkloadPowerProfileGetProfilesInfo
	.type nvmlDeviceWorkloadPowerProfileGetProfilesInfo, @function
nvmlDeviceWorkloadPowerProfileGetProfilesInfo:
	endbr64
	jmp *velocpy_nvml_table+2248(%rip)
	.size nvmlDeviceWorkloadPowerProfileGetProfilesInfo, .-nvmlDeviceWorkloadPowerProfileGetProfilesInfo
	.globl nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
	.hidden nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
	.type nvmlDeviceWorkloadPowerProfileSetRequestedProfiles, @function
nvmlDeviceWorkloadPowerProfileSetRequestedProfiles:
	endbr64
	jmp *velocpy_nvml_table+2256(%rip)
	.size nvmlDeviceWorkloadPowerProfileSetRequestedProfiles, .-nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
	.globl nvmlErrorString
	.hidden nvmlErrorString
	.type nvmlErrorString, @function
nvmlErrorString:
	endbr64
	jmp *velocpy_nvml_table+2264(%rip)
	.size nvmlErrorString, .-nvmlErrorString
	.globl nvmlEventSetCreate
	.hidden nvmlEventSetCreate
	.type nvmlEventSetCreate, @function
nvmlEventSetCreate:
	endbr64
	jmp *velocpy_nvml_table+2272(%rip)
	.size nvmlEventSetCreate, .-nvmlEventSetCreate
	.globl nvmlEventSetFree
	.hidden nvmlEventSetFree
	.type nvmlEventSetFree, @function
nvmlEventSetFree:
	endbr64
	jmp *velocpy_nvml_table+2280(%rip)
	.size nvmlEventSetFree, .-nvmlEventSetFree
	.globl nvmlEventSetWait
	.hidden nvmlEventSetWait
	.type nvmlEventSetWait, @function
nvmlEventSetWait:
	endbr64
	jmp *velocpy_nvml_table+2288(%rip)
	.size nvmlEventSetWait, .-nvmlEventSetWait
	.globl nvmlEventSetWait_v2
	.hidden nvmlEventSetWait_v2
	.type nvmlEventSetWait_v2, @function
nvmlEventSetWait_v2:
	endbr64
	jmp *velocpy_nvml_table+2296(%rip)
	.size nvmlEventSetWait_v2, .-nvmlEventSetWait_v2
	.globl nvmlGetExcludedDeviceCount
	.hidden nvmlGetExcludedDeviceCount
	.type nvmlGetExcludedDeviceCount, @function
nvmlGetExcludedDeviceCount:
	endbr64
	jmp *velocpy_nvml_table+2304(%rip)
	.size nvmlGetExcludedDeviceCount, .-nvmlGetExcludedDeviceCount
	.globl nvmlGetExcludedDeviceInfoByIndex
	.hidden nvmlGetExcludedDeviceInfoByIndex
	.type nvmlGetExcludedDeviceInfoByIndex, @function
nvmlGetExcludedDeviceInfoByIndex:
	endbr64
	jmp *velocpy_nvml_table+2312(%rip)
	.size nvmlGetExcludedDeviceInfoByIndex, .-nvmlGetExcludedDeviceInfoByIndex
	.globl nvmlGetVgpuCompatibility
	.hidden nvmlGetVgpuCompatibility
	.type nvmlGetVgpuCompatibility, @function
nvmlGetVgpuCompatibility:
	endbr64
	jmp *velocpy_nvml_table+2320(%rip)
	.size nvmlGetVgpuCompatibility, .-nvmlGetVgpuCompatibility
	.globl nvmlGetVgpuDriverCapabilities
	.hidden nvmlGetVgpuDriverCapabilities
	.type nvmlGetVgpuDriverCapabilities, @function
nvmlGetVgpuDriverCapabilities:
	endbr64
	jmp *velocpy_nvml_table+2328(%rip)
	.size nvmlGetVgpuDriverCapabilities, .-nvmlGetVgpuDriverCapabilities
	.globl nvmlGetVgpuVersion
	.hidden nvmlGetVgpuVersion
	.type nvmlGetVgpuVersion, @function
nvmlGetVgpuVersion:
	endbr64
	jmp *velocpy_nvml_table+2336(%rip)
	.size nvmlGetVgpuVersion, .-nvmlGetVgpuVersion
	.globl nvmlGpmMetricsGet
	.hidden nvmlGpmMetricsGet
	.type nvmlGpmMetricsGet, @function
nvmlGpmMetricsGet:
	endbr64
	jmp *velocpy_nvml_table+2344(%rip)
	.size nvmlGpmMetricsGet, .-nvmlGpmMetricsGet
	.globl nvmlGpmMigSampleGet
	.hidden nvmlGpmMigSampleGet
	.type nvmlGpmMigSampleGet, @function
nvmlGpmMigSampleGet:
	endbr64
	jmp *velocpy_nvml_table+2352(%rip)
	.size nvmlGpmMigSampleGet, .-nvmlGpmMigSampleGet
	.globl nvmlGpmQueryDeviceSupport
	.hidden nvmlGpmQueryDeviceSupport
	.type nvmlGpmQueryDeviceSupport, @function
nvmlGpmQueryDeviceSupport:
	endbr64
	jmp *velocpy_nvml_table+2360(%rip)
	.size nvmlGpmQueryDeviceSupport, .-nvmlGpmQueryDeviceSupport
	.globl nvmlGpmQueryIfStreamingEnabled
	.hidden nvmlGpmQueryIfStreamingEnabled
	.type nvmlGpmQueryIfStreamingEnabled, @function
nvmlGpmQueryIfStreamingEnabled:
	endbr64
	jmp *velocpy_nvml_table+2368(%rip)
	.size nvmlGpmQueryIfStreamingEnabled, .-nvmlGpmQueryIfStreamingEnabled
	.globl nvmlGpmSampleAlloc
	.hidden nvmlGpmSampleAlloc
	.type nvmlGpmSampleAlloc, @function
nvmlGpmSampleAlloc:
	endbr64
	jmp *velocpy_nvml_table+2376(%rip)
	.size nvmlGpmSampleAlloc, .-nvmlGpmSampleAlloc
	.globl nvmlGpmSampleFree
	.hidden nvmlGpmSampleFree
	.type nvmlGpmSampleFree, @function
nvmlGpmSampleFree:
	endbr64
	jmp *velocpy_nvml_table+2384(%rip)
	.size nvmlGpmSampleFree, .-nvmlGpmSampleFree
	.globl nvmlGpmSampleGet
	.hidden nvmlGpmSampleGet
	.type nvmlGpmSampleGet, @function
nvmlGpmSampleGet:
	endbr64
	jmp *velocpy_nvml_table+2392(%rip)
	.size nvmlGpmSampleGet, .-nvmlGpmSampleGet
	.globl nvmlGpmSetStreamingEnabled
	.hidden nvmlGpmSetStreamingEnabled
	.type nvmlGpmSetStreamingEnabled, @function
nvmlGpmSetStreamingEnabled:
	endbr64
	jmp *velocpy_nvml_table+2400(%rip)
	.size nvmlGpmSetStreamingEnabled, .-nvmlGpmSetStreamingEnabled
	.globl nvmlGpuInstanceCreateComputeInstance
	.hidden nvmlGpuInstanceCreateComputeInstance
	.type nvmlGpuInstanceCreateComputeInstance, @function
nvmlGpuInstanceCreateComputeInstance:
	endbr64
	jmp *velocpy_nvml_table+2408(%rip)
	.size nvmlGpuInstanceCreateComputeInstance, .-nvmlGpuInstanceCreateComputeInstance
	.globl nvmlGpuInstanceCreateComputeInstanceWithPlacement
	.hidden nvmlGpuInstanceCreateComputeInstanceWithPlacement
	.type nvmlGpuInstanceCreateComputeInstanceWithPlacement, @function
nvmlGpuInstanceCreateComputeInstanceWithPlacement:
	endbr64
	jmp *velocpy_nvml_table+2416(%rip)
	.size nvmlGpuInstanceCreateComputeInstanceWithPlacement, .-nvmlGpuInstanceCreateComputeInstanceWithPlacement
	.globl nvmlGpuInstanceDestroy
	.hidden nvmlGpuInstanceDestroy
	.type nvmlGpuInstanceDestroy, @function
nvmlGpuInstanceDestroy:
	endbr64
	jmp *velocpy_nvml_table+2424(%rip)
	.size nvmlGpuInstanceDestroy, .-nvmlGpuInstanceDestroy
	.globl nvmlGpuInstanceGetActiveVgpus
	.hidden nvmlGpuInstanceGetActiveVgpus
	.type nvmlGpuInstanceGetActiveVgpus, @function
nvmlGpuInstanceGetActiveVgpus:
	endbr64
	jmp *velocpy_nvml_table+2432(%rip)
	.size nvmlGpuInstanceGetActiveVgpus, .-nvmlGpuInstanceGetActiveVgpus
	.globl nvmlGpuInstanceGetComputeInstanceById
	.hidden nvmlGpuInstanceGetComputeInstanceById
	.type nvmlGpuInstanceGetComputeInstanceById, @function
nvmlGpuInstanceGetComputeInstanceById:
	endbr64
	jmp *velocpy_nvml_table+2440(%rip)
	.size nvmlGpuInstanceGetComputeInstanceById, .-nvmlGpuInstanceGetComputeInstanceById
	.globl nvmlGpuInstanceGetComputeInstancePossiblePlacements
	.hidden nvmlGpuInstanceGetComputeInstancePossiblePlacements
	.type nvmlGpuInstanceGetComputeInstancePossiblePlacements, @function
nvmlGpuInstanceGetComputeInstancePossiblePlacements:
	endbr64
	jmp *velocpy_nvml_table+2448(%rip)
	.size nvmlGpuInstanceGetComputeInstancePossiblePlacements, .-nvmlGpuInstanceGetComputeInstancePossiblePlacements
	.globl nvmlGpuInstanceGetComputeInstanceProfileInfo
	.hidden nvmlGpuInstanceGetComputeInstanceProfileInfo
	.type nvmlGpuInstanceGetComputeInstanceProfileInfo, @function
nvmlGpuInstanceGetComputeInstanceProfileInfo:
	endbr64
	jmp *velocpy_nvml_table+2456(%rip)
	.size nvmlGpuInstanceGetComputeInstanceProfileInfo, .-nvmlGpuInstanceGetComputeInstanceProfileInfo
	.globl nvmlGpuInstanceGetComputeInstanceProfileInfoV
	.hidden nvmlGpuInstanceGetComputeInstanceProfileInfoV
	.type nvmlGpuInstanceGetComputeInstanceProfileInfoV, @function
nvmlGpuInstanceGetComputeInstanceProfileInfoV:
	endbr64
	jmp *velocpy_nvml_table+2464(%rip)
	.size nvmlGpuInstanceGetComputeInstanceProfileInfoV, .-nvmlGpuInstanceGetComputeInstanceProfileInfoV
	.globl nvmlGpuInstanceGetComputeInstanceRemainingCapacity
	.hidden nvmlGpuInstanceGetComputeInstanceRemainingCapacity
	.type nvmlGpuInstanceGetComputeInstanceRemainingCapacity, @function
nvmlGpuInstanceGetComputeInstanceRemainingCapacity:
	endbr64
	jmp *velocpy_nvml_table+2472(%rip)
	.size nvmlGpuInstanceGetComputeInstanceRemainingCapacity, .-nvmlGpuInstanceGetComputeInstanceRemainingCapacity
	.globl nvmlGpuInstanceGetComputeInstances
	.hidden nvmlGpuInstanceGetComputeInstances
	.type nvmlGpuInstanceGetComputeInstances, @function
nvmlGpuInstanceGetComputeInstances:
	endbr64
	jmp *velocpy_nvml_table+2480(%rip)
	.size nvmlGpuInstanceGetComputeInstances, .-nvmlGpuInstanceGetComputeInstances
	.globl nvmlGpuInstanceGetCreatableVgpus
	.hidden nvmlGpuInstanceGetCreatableVgpus
	.type nvmlGpuInstanceGetCreatableVgpus, @function
nvmlGpuInstanceGetCreatableVgpus:
	endbr64
	jmp *velocpy_nvml_table+2488(%rip)
	.size nvmlGpuInstanceGetCreatableVgpus, .-nvmlGpuInstanceGetCreatableVgpus
	.globl nvmlGpuInstanceGetInfo
	.hidden nvmlGpuInstanceGetInfo
	.type nvmlGpuInstanceGetInfo, @function
nvmlGpuInstanceGetInfo:
	endbr64
	jmp *velocpy_nvml_table+2496(%rip)
	.size nvmlGpuInstanceGetInfo, .-nvmlGpuInstanceGetInfo
	.globl nvmlGpuInstanceGetVgpuHeterogeneousMode
	.hidden nvmlGpuInstanceGetVgpuHeterogeneousMode
	.type nvmlGpuInstanceGetVgpuHeterogeneousMode, @function
nvmlGpuInstanceGetVgpuHeterogeneousMode:
	endbr64
	jmp *velocpy_nvml_table+2504(%rip)
	.size nvmlGpuInstanceGetVgpuHeterogeneousMode, .-nvmlGpuInstanceGetVgpuHeterogeneousMode
	.globl nvmlGpuInstanceGetVgpuSchedulerLog
	.hidden nvmlGpuInstanceGetVgpuSchedulerLog
	.type nvmlGpuInstanceGetVgpuSchedulerLog, @function
nvmlGpuInstanceGetVgpuSchedulerLog:
	endbr64
	jmp *velocpy_nvml_table+2512(%rip)
	.size nvmlGpuInstanceGetVgpuSchedulerLog, .-nvmlGpuInstanceGetVgpuSchedulerLog
	.globl nvmlGpuInstanceGetVgpuSchedulerState
	.hidden nvmlGpuInstanceGetVgpuSchedulerState
	.type nvmlGpuInstanceGetVgpuSchedulerState, @function
nvmlGpuInstanceGetVgpuSchedulerState:
	endbr64
	jmp *velocpy_nvml_table+2520(%rip)
	.size nvmlGpuInstanceGetVgpuSchedulerState, .-nvmlGpuInstanceGetVgpuSchedulerState
	.globl nvmlGpuInstanceGetVgpuTypeCreatablePlacements
	.hidden nvmlGpuInstanceGetVgpuTypeCreatablePlacements
	.type nvmlGpuInstanceGetVgpuTypeCreatablePlacements, @function
nvmlGpuInstanceGetVgpuTypeCreatablePlacements:
	endbr64
	jmp *velocpy_nvml_table+2528(%rip)
	.size nvmlGpuInstanceGetVgpuTypeCreatablePlacements, .-nvmlGpuInstanceGetVgpuTypeCreatablePlacements
	.globl nvmlGpuInstanceSetVgpuHeterogeneousMode
	.hidden nvmlGpuInstanceSetVgpuHeterogeneousMode
	.type nvmlGpuInstanceSetVgpuHeterogeneousMode, @function
nvmlGpuInstanceSetVgpuHeterogeneousMode:
	endbr64
	jmp *velocpy_nvml_table+2536(%rip)
	.size nvmlGpuInstanceSetVgpuHeterogeneousMode, .-nvmlGpuInstanceSetVgpuHeterogeneousMode
	.globl nvmlGpuInstanceSetVgpuSchedulerState
	.hidden nvmlGpuInstanceSetVgpuSchedulerState
	.type nvmlGpuInstanceSetVgpuSchedulerState, @function
nvmlGpuInstanceSetVgpuSchedulerState:
	endbr64
	jmp *velocpy_nvml_table+2544(%rip)
	.size nvmlGpuInstanceSetVgpuSchedulerState, .-nvmlGpuInstanceSetVgpuSchedulerState
	.globl nvmlInit
	.hidden nvmlInit
	.type nvmlInit, @function
nvmlInit:
	endbr64
	jmp *velocpy_nvml_table+2552(%rip)
	.size nvmlInit, .-nvmlInit
	.globl nvmlInitWithFlags
	.hidden nvmlInitWithFlags
	.type nvmlInitWithFlags, @function
nvmlInitWithFlags:
	endbr64
	jmp *velocpy_nvml_table+2560(%rip)
	.size nvmlInitWithFlags, .-nvmlInitWithFlags
	.globl nvmlInit_v2
	.hidden nvmlInit_v2
	.type nvmlInit_v2, @function
nvmlInit_v2:
	endbr64
	jmp *velocpy_nvml_table+2568(%rip)
	.size nvmlInit_v2, .-nvmlInit_v2
	.globl nvmlSetVgpuVersion
	.hidden nvmlSetVgpuVersion
	.type nvmlSetVgpuVersion, @function
nvmlSetVgpuVersion:
	endbr64
	jmp *velocpy_nvml_table+2576(%rip)
	.size nvmlSetVgpuVersion, .-nvmlSetVgpuVersion
	.globl nvmlShutdown
	.hidden nvmlShutdown
	.type nvmlShutdown, @function
nvmlShutdown:
	endbr64
	jmp *velocpy_nvml_table+2584(%rip)
	.size nvmlShutdown, .-nvmlShutdown
	.globl nvmlSystemEventSetCreate
	.hidden nvmlSystemEventSetCreate
	.type nvmlSystemEventSetCreate, @function
nvmlSystemEventSetCreate:
	endbr64
	jmp *velocpy_nvml_table+2592(%rip)
	.size nvmlSystemEventSetCreate, .-nvmlSystemEventSetCreate
	.globl nvmlSystemEventSetFree
	.hidden nvmlSystemEventSetFree
	.type nvmlSystemEventSetFree, @function
nvmlSystemEventSetFree:
	endbr64
	jmp *velocpy_nvml_table+2600(%rip)
	.size nvmlSystemEventSetFree, .-nvmlSystemEventSetFree
	.globl nvmlSystemEventSetWait
	.hidden nvmlSystemEventSetWait
	.type nvmlSystemEventSetWait, @function
nvmlSystemEventSetWait:
	endbr64
	jmp *velocpy_nvml_table+2608(%rip)
	.size nvmlSystemEventSetWait, .-nvmlSystemEventSetWait
	.globl nvmlSystemGetConfComputeCapabilities
	.hidden nvmlSystemGetConfComputeCapabilities
	.type nvmlSystemGetConfComputeCapabilities, @function
nvmlSystemGetConfComputeCapabilities:
	endbr64
	jmp *velocpy_nvml_table+2616(%rip)
	.size nvmlSystemGetConfComputeCapabilities, .-nvmlSystemGetConfComputeCapabilities
	.globl nvmlSystemGetConfComputeGpusReadyState
	.hidden nvmlSystemGetConfComputeGpusReadyState
	.type nvmlSystemGetConfComputeGpusReadyState, @function
nvmlSystemGetConfComputeGpusReadyState:
	endbr64
	jmp *velocpy_nvml_table+2624(%rip)
	.size nvmlSystemGetConfComputeGpusReadyState, .-nvmlSystemGetConfComputeGpusReadyState
	.globl nvmlSystemGetConfComputeKeyRotationThresholdInfo
	.hidden nvmlSystemGetConfComputeKeyRotationThresholdInfo
	.type nvmlSystemGetConfComputeKeyRotationThresholdInfo, @function
nvmlSystemGetConfComputeKeyRotationThresholdInfo:
	endbr64
	jmp *velocpy_nvml_table+2632(%rip)
	.size nvmlSystemGetConfComputeKeyRotationThresholdInfo, .-nvmlSystemGetConfComputeKeyRotationThresholdInfo
	.globl nvmlSystemGetConfComputeSettings
	.hidden nvmlSystemGetConfComputeSettings
	.type nvmlSystemGetConfComputeSettings, @function
nvmlSystemGetConfComputeSettings:
	endbr64
	jmp *velocpy_nvml_table+2640(%rip)
	.size nvmlSystemGetConfComputeSettings, .-nvmlSystemGetConfComputeSettings
	.globl nvmlSystemGetConfComputeState
	.hidden nvmlSystemGetConfComputeState
	.type nvmlSystemGetConfComputeState, @function
nvmlSystemGetConfComputeState:
	endbr64
	jmp *velocpy_nvml_table+2648(%rip)
	.size nvmlSystemGetConfComputeState, .-nvmlSystemGetConfComputeState
	.globl nvmlSystemGetCudaDriverVersion
	.hidden nvmlSystemGetCudaDriverVersion
	.type nvmlSystemGetCudaDriverVersion, @function
nvmlSystemGetCudaDriverVersion:
	endbr64
	jmp *velocpy_nvml_table+2656(%rip)
	.size nvmlSystemGetCudaDriverVersion, .-nvmlSystemGetCudaDriverVersion
	.globl nvmlSystemGetCudaDriverVersion_v2
	.hidden nvmlSystemGetCudaDriverVersion_v2
	.type nvmlSystemGetCudaDriverVersion_v2, @function
nvmlSystemGetCudaDriverVersion_v2:
	endbr64
	jmp *velocpy_nvml_table+2664(%rip)
	.size nvmlSystemGetCudaDriverVersion_v2, .-nvmlSystemGetCudaDriverVersion_v2
	.globl nvmlSystemGetDriverBranch
	.hidden nvmlSystemGetDriverBranch
	.type nvmlSystemGetDriverBranch, @function
nvmlSystemGetDriverBranch:
	endbr64
	jmp *velocpy_nvml_table+2672(%rip)
	.size nvmlSystemGetDriverBranch, .-nvmlSystemGetDriverBranch
	.globl nvmlSystemGetDriverVersion
	.hidden nvmlSystemGetDriverVersion
	.type nvmlSystemGetDriverVersion, @function
nvmlSystemGetDriverVersion:
	endbr64
	jmp *velocpy_nvml_table+2680(%rip)
	.size nvmlSystemGetDriverVersion, .-nvmlSystemGetDriverVersion
	.globl nvmlSystemGetHicVersion
	.hidden nvmlSystemGetHicVersion
	.type nvmlSystemGetHicVersion, @function
nvmlSystemGetHicVersion:
	endbr64
	jmp *velocpy_nvml_table+2688(%rip)
	.size nvmlSystemGetHicVersion, .-nvmlSystemGetHicVersion
	.globl nvmlSystemGetNVMLVersion
	.hidden nvmlSystemGetNVMLVersion
	.type nvmlSystemGetNVMLVersion, @function
nvmlSystemGetNVMLVersion:
	endbr64
	jmp *velocpy_nvml_table+2696(%rip)
	.size nvmlSystemGetNVMLVersion, .-nvmlSystemGetNVMLVersion
	.globl nvmlSystemGetNvlinkBwMode
	.hidden nvmlSystemGetNvlinkBwMode
	.type nvmlSystemGetNvlinkBwMode, @function
nvmlSystemGetNvlinkBwMode:
	endbr64
	jmp *velocpy_nvml_table+2704(%rip)
	.size nvmlSystemGetNvlinkBwMode, .-nvmlSystemGetNvlinkBwMode
	.globl nvmlSystemGetProcessName
	.hidden nvmlSystemGetProcessName
	.type nvmlSystemGetProcessName, @function
nvmlSystemGetProcessName:
	endbr64
	jmp *velocpy_nvml_table+2712(%rip)
	.size nvmlSystemGetProcessName, .-nvmlSystemGetProcessName
	.globl nvmlSystemGetTopologyGpuSet
	.hidden nvmlSystemGetTopologyGpuSet
	.type nvmlSystemGetTopologyGpuSet, @function
nvmlSystemGetTopologyGpuSet:
	endbr64
	jmp *velocpy_nvml_table+2720(%rip)
	.size nvmlSystemGetTopologyGpuSet, .-nvmlSystemGetTopologyGpuSet
	.globl nvmlSystemRegisterEvents
	.hidden nvmlSystemRegisterEvents
	.type nvmlSystemRegisterEvents, @function
nvmlSystemRegisterEvents:
	endbr64
	jmp *velocpy_nvml_table+2728(%rip)
	.size nvmlSystemRegisterEvents, .-nvmlSystemRegisterEvents
	.globl nvmlSystemSetConfComputeGpusReadyState
	.hidden nvmlSystemSetConfComputeGpusReadyState
	.type nvmlSystemSetConfComputeGpusReadyState, @function
nvmlSystemSetConfComputeGpusReadyState:
	endbr64
	jmp *velocpy_nvml_table+2736(%rip)
	.size nvmlSystemSetConfComputeGpusReadyState, .-nvmlSystemSetConfComputeGpusReadyState
	.globl nvmlSystemSetConfComputeKeyRotationThresholdInfo
	.hidden nvmlSystemSetConfComputeKeyRotationThresholdInfo
	.type nvmlSystemSetConfComputeKeyRotationThresholdInfo, @function
nvmlSystemSetConfComputeKeyRotationThresholdInfo:
	endbr64
	jmp *velocpy_nvml_table+2744(%rip)
	.size nvmlSystemSetConfComputeKeyRotationThresholdInfo, .-nvmlSystemSetConfComputeKeyRotationThresholdInfo
	.globl nvmlSystemSetNvlinkBwMode
	.hidden nvmlSystemSetNvlinkBwMode
	.type nvmlSystemSetNvlinkBwMode, @function
nvmlSystemSetNvlinkBwMode:
	endbr64
	jmp *velocpy_nvml_table+2752(%rip)
	.size nvmlSystemSetNvlinkBwMode, .-nvmlSystemSetNvlinkBwMode
	.globl nvmlUnitGetCount
	.hidden nvmlUnitGetCount
	.type nvmlUnitGetCount, @function
nvmlUnitGetCount:
	endbr64
	jmp *velocpy_nvml_table+2760(%rip)
	.size nvmlUnitGetCount, .-nvmlUnitGetCount
	.globl nvmlUnitGetDevices
	.hidden nvmlUnitGetDevices
	.type nvmlUnitGetDevices, @function
nvmlUnitGetDevices:
	endbr64
	jmp *velocpy_nvml_table+2768(%rip)
	.size nvmlUnitGetDevices, .-nvmlUnitGetDevices
	.globl nvmlUnitGetFanSpeedInfo
	.hidden nvmlUnitGetFanSpeedInfo
	.type nvmlUnitGetFanSpeedInfo, @function
nvmlUnitGetFanSpeedInfo:
	endbr64
	jmp *velocpy_nvml_table+2776(%rip)
	.size nvmlUnitGetFanSpeedInfo, .-nvmlUnitGetFanSpeedInfo
	.globl nvmlUnitGetHandleByIndex
	.hidden nvmlUnitGetHandleByIndex
	.type nvmlUnitGetHandleByIndex, @function
nvmlUnitGetHandleByIndex:
	endbr64
	jmp *velocpy_nvml_table+2784(%rip)
	.size nvmlUnitGetHandleByIndex, .-nvmlUnitGetHandleByIndex
	.globl nvmlUnitGetLedState
	.hidden nvmlUnitGetLedState
	.type nvmlUnitGetLedState, @function
nvmlUnitGetLedState:
	endbr64
	jmp *velocpy_nvml_table+2792(%rip)
	.size nvmlUnitGetLedState, .-nvmlUnitGetLedState
	.globl nvmlUnitGetPsuInfo
	.hidden nvmlUnitGetPsuInfo
	.type nvmlUnitGetPsuInfo, @function
nvmlUnitGetPsuInfo:
	endbr64
	jmp *velocpy_nvml_table+2800(%rip)
	.size nvmlUnitGetPsuInfo, .-nvmlUnitGetPsuInfo
	.globl nvmlUnitGetTemperature
	.hidden nvmlUnitGetTemperature
	.type nvmlUnitGetTemperature, @function
nvmlUnitGetTemperature:
	endbr64
	jmp *velocpy_nvml_table+2808(%rip)
	.size nvmlUnitGetTemperature, .-nvmlUnitGetTemperature
	.globl nvmlUnitGetUnitInfo
	.hidden nvmlUnitGetUnitInfo
	.type nvmlUnitGetUnitInfo, @function
nvmlUnitGetUnitInfo:
	endbr64
	jmp *velocpy_nvml_table+2816(%rip)
	.size nvmlUnitGetUnitInfo, .-nvmlUnitGetUnitInfo
	.globl nvmlUnitSetLedState
	.hidden nvmlUnitSetLedState
	.type nvmlUnitSetLedState, @function
nvmlUnitSetLedState:
	endbr64
	jmp *velocpy_nvml_table+2824(%rip)
	.size nvmlUnitSetLedState, .-nvmlUnitSetLedState
	.globl nvmlVgpuInstanceClearAccountingPids
	.hidden nvmlVgpuInstanceClearAccountingPids
	.type nvmlVgpuInstanceClearAccountingPids, @function
nvmlVgpuInstanceClearAccountingPids:
	endbr64
	jmp *velocpy_nvml_table+2832(%rip)
	.size nvmlVgpuInstanceClearAccountingPids, .-nvmlVgpuInstanceClearAccountingPids
	.globl nvmlVgpuInstanceGetAccountingMode
	.hidden nvmlVgpuInstanceGetAccountingMode
	.type nvmlVgpuInstanceGetAccountingMode, @function
nvmlVgpuInstanceGetAccountingMode:
	endbr64
	jmp *velocpy_nvml_table+2840(%rip)
	.size nvmlVgpuInstanceGetAccountingMode, .-nvmlVgpuInstanceGetAccountingMode
	.globl nvmlVgpuInstanceGetAccountingPids
	.hidden nvmlVgpuInstanceGetAccountingPids
	.type nvmlVgpuInstanceGetAccountingPids, @function
nvmlVgpuInstanceGetAccountingPids:
	endbr64
	jmp *velocpy_nvml_table+2848(%rip)
	.size nvmlVgpuInstanceGetAccountingPids, .-nvmlVgpuInstanceGetAccountingPids
	.globl nvmlVgpuInstanceGetAccountingStats
	.hidden nvmlVgpuInstanceGetAccountingStats
	.type nvmlVgpuInstanceGetAccountingStats, @function
nvmlVgpuInstanceGetAccountingStats:
	endbr64
	jmp *velocpy_nvml_table+2856(%rip)
	.size nvmlVgpuInstanceGetAccountingStats, .-nvmlVgpuInstanceGetAccountingStats
	.globl nvmlVgpuInstanceGetEccMode
	.hidden nvmlVgpuInstanceGetEccMode
	.type nvmlVgpuInstanceGetEccMode, @function
nvmlVgpuInstanceGetEccMode:
	endbr64
	jmp *velocpy_nvml_table+2864(%rip)
	.size nvmlVgpuInstanceGetEccMode, .-nvmlVgpuInstanceGetEccMode
	.globl nvmlVgpuInstanceGetEncoderCapacity
	.hidden nvmlVgpuInstanceGetEncoderCapacity
	.type nvmlVgpuInstanceGetEncoderCapacity, @function
nvmlVgpuInstanceGetEncoderCapacity:
	endbr64
	jmp *velocpy_nvml_table+2872(%rip)
	.size nvmlVgpuInstanceGetEncoderCapacity, .-nvmlVgpuInstanceGetEncoderCapacity
	.globl nvmlVgpuInstanceGetEncoderSessions
	.hidden nvmlVgpuInstanceGetEncoderSessions
	.type nvmlVgpuInstanceGetEncoderSessions, @function
nvmlVgpuInstanceGetEncoderSessions:
	endbr64
	jmp *velocpy_nvml_table+2880(%rip)
	.size nvmlVgpuInstanceGetEncoderSessions, .-nvmlVgpuInstanceGetEncoderSessions
	.globl nvmlVgpuInstanceGetEncoderStats
	.hidden nvmlVgpuInstanceGetEncoderStats
	.type nvmlVgpuInstanceGetEncoderStats, @function
nvmlVgpuInstanceGetEncoderStats:
	endbr64
	jmp *velocpy_nvml_table+2888(%rip)
	.size nvmlVgpuInstanceGetEncoderStats, .-nvmlVgpuInstanceGetEncoderStats
	.globl nvmlVgpuInstanceGetFBCSessions
	.hidden nvmlVgpuInstanceGetFBCSessions
	.type nvmlVgpuInstanceGetFBCSessions, @function
nvmlVgpuInstanceGetFBCSessions:
	endbr64
	jmp *velocpy_nvml_table+2896(%rip)
	.size nvmlVgpuInstanceGetFBCSessions, .-nvmlVgpuInstanceGetFBCSessions
	.globl nvmlVgpuInstanceGetFBCStats
	.hidden nvmlVgpuInstanceGetFBCStats
	.type nvmlVgpuInstanceGetFBCStats, @function
nvmlVgpuInstanceGetFBCStats:
	endbr64
	jmp *velocpy_nvml_table+2904(%rip)
	.size nvmlVgpuInstanceGetFBCStats, .-nvmlVgpuInstanceGetFBCStats
	.globl nvmlVgpuInstanceGetFbUsage
	.hidden nvmlVgpuInstanceGetFbUsage
	.type nvmlVgpuInstanceGetFbUsage, @function
nvmlVgpuInstanceGetFbUsage:
	endbr64
	jmp *velocpy_nvml_table+2912(%rip)
	.size nvmlVgpuInstanceGetFbUsage, .-nvmlVgpuInstanceGetFbUsage
	.globl nvmlVgpuInstanceGetFrameRateLimit
	.hidden nvmlVgpuInstanceGetFrameRateLimit
	.type nvmlVgpuInstanceGetFrameRateLimit, @function
nvmlVgpuInstanceGetFrameRateLimit:
	endbr64
	jmp *velocpy_nvml_table+2920(%rip)
	.size nvmlVgpuInstanceGetFrameRateLimit, .-nvmlVgpuInstanceGetFrameRateLimit
	.globl nvmlVgpuInstanceGetGpuInstanceId
	.hidden nvmlVgpuInstanceGetGpuInstanceId
	.type nvmlVgpuInstanceGetGpuInstanceId, @function
nvmlVgpuInstanceGetGpuInstanceId:
	endbr64
	jmp *velocpy_nvml_table+2928(%rip)
	.size nvmlVgpuInstanceGetGpuInstanceId, .-nvmlVgpuInstanceGetGpuInstanceId
	.globl nvmlVgpuInstanceGetGpuPciId
	.hidden nvmlVgpuInstanceGetGpuPciId
	.type nvmlVgpuInstanceGetGpuPciId, @function
nvmlVgpuInstanceGetGpuPciId:
	endbr64
	jmp *velocpy_nvml_table+2936(%rip)
	.size nvmlVgpuInstanceGetGpuPciId, .-nvmlVgpuInstanceGetGpuPciId
	.globl nvmlVgpuInstanceGetLicenseInfo
	.hidden nvmlVgpuInstanceGetLicenseInfo
	.type nvmlVgpuInstanceGetLicenseInfo, @function
nvmlVgpuInstanceGetLicenseInfo:
	endbr64
	jmp *velocpy_nvml_table+2944(%rip)
	.size nvmlVgpuInstanceGetLicenseInfo, .-nvmlVgpuInstanceGetLicenseInfo
	.globl nvmlVgpuInstanceGetLicenseInfo_v2
	.hidden nvmlVgpuInstanceGetLicenseInfo_v2
	.type nvmlVgpuInstanceGetLicenseInfo_v2, @function
nvmlVgpuInstanceGetLicenseInfo_v2:
	endbr64
	jmp *velocpy_nvml_table+2952(%rip)
	.size nvmlVgpuInstanceGetLicenseInfo_v2, .-nvmlVgpuInstanceGetLicenseInfo_v2
	.globl nvmlVgpuInstanceGetLicenseStatus
	.hidden nvmlVgpuInstanceGetLicenseStatus
	.type nvmlVgpuInstanceGetLicenseStatus, @function
nvmlVgpuInstanceGetLicenseStatus:
	endbr64
	jmp *velocpy_nvml_table+2960(%rip)
	.size nvmlVgpuInstanceGetLicenseStatus, .-nvmlVgpuInstanceGetLicenseStatus
	.globl nvmlVgpuInstanceGetMdevUUID
	.hidden nvmlVgpuInstanceGetMdevUUID
	.type nvmlVgpuInstanceGetMdevUUID, @function
nvmlVgpuInstanceGetMdevUUID:
	endbr64
	jmp *velocpy_nvml_table+2968(%rip)
	.size nvmlVgpuInstanceGetMdevUUID, .-nvmlVgpuInstanceGetMdevUUID
	.globl nvmlVgpuInstanceGetMetadata
	.hidden nvmlVgpuInstanceGetMetadata
	.type nvmlVgpuInstanceGetMetadata, @function
nvmlVgpuInstanceGetMetadata:
	endbr64
	jmp *velocpy_nvml_table+2976(%rip)
	.size nvmlVgpuInstanceGetMetadata, .-nvmlVgpuInstanceGetMetadata
	.globl nvmlVgpuInstanceGetPlacementId
	.hidden nvmlVgpuInstanceGetPlacementId
	.type nvmlVgpuInstanceGetPlacementId, @function
nvmlVgpuInstanceGetPlacementId:
	endbr64
	jmp *velocpy_nvml_table+2984(%rip)
	.size nvmlVgpuInstanceGetPlacementId, .-nvmlVgpuInstanceGetPlacementId
	.globl nvmlVgpuInstanceGetRuntimeStateSize
	.hidden nvmlVgpuInstanceGetRuntimeStateSize
	.type nvmlVgpuInstanceGetRuntimeStateSize, @function
nvmlVgpuInstanceGetRuntimeStateSize:
	endbr64
	jmp *velocpy_nvml_table+2992(%rip)
	.size nvmlVgpuInstanceGetRuntimeStateSize, .-nvmlVgpuInstanceGetRuntimeStateSize
	.globl nvmlVgpuInstanceGetType
	.hidden nvmlVgpuInstanceGetType
	.type nvmlVgpuInstanceGetType, @function
nvmlVgpuInstanceGetType:
	endbr64
	jmp *velocpy_nvml_table+3000(%rip)
	.size nvmlVgpuInstanceGetType, .-nvmlVgpuInstanceGetType
	.globl nvmlVgpuInstanceGetUUID
	.hidden nvmlVgpuInstanceGetUUID
	.type nvmlVgpuInstanceGetUUID, @function
nvmlVgpuInstanceGetUUID:
	endbr64
	jmp *velocpy_nvml_table+3008(%rip)
	.size nvmlVgpuInstanceGetUUID, .-nvmlVgpuInstanceGetUUID
	.globl nvmlVgpuInstanceGetVmDriverVersion
	.hidden nvmlVgpuInstanceGetVmDriverVersion
	.type nvmlVgpuInstanceGetVmDriverVersion, @function
nvmlVgpuInstanceGetVmDriverVersion:
	endbr64
	jmp *velocpy_nvml_table+3016(%rip)
	.size nvmlVgpuInstanceGetVmDriverVersion, .-nvmlVgpuInstanceGetVmDriverVersion
	.globl nvmlVgpuInstanceGetVmID
	.hidden nvmlVgpuInstanceGetVmID
	.type nvmlVgpuInstanceGetVmID, @function
nvmlVgpuInstanceGetVmID:
	endbr64
	jmp *velocpy_nvml_table+3024(%rip)
	.size nvmlVgpuInstanceGetVmID, .-nvmlVgpuInstanceGetVmID
	.globl nvmlVgpuInstanceSetEncoderCapacity
	.hidden nvmlVgpuInstanceSetEncoderCapacity
	.type nvmlVgpuInstanceSetEncoderCapacity, @function
nvmlVgpuInstanceSetEncoderCapacity:
	endbr64
	jmp *velocpy_nvml_table+3032(%rip)
	.size nvmlVgpuInstanceSetEncoderCapacity, .-nvmlVgpuInstanceSetEncoderCapacity
	.globl nvmlVgpuTypeGetBAR1Info
	.hidden nvmlVgpuTypeGetBAR1Info
	.type nvmlVgpuTypeGetBAR1Info, @function
nvmlVgpuTypeGetBAR1Info:
	endbr64
	jmp *velocpy_nvml_table+3040(%rip)
	.size nvmlVgpuTypeGetBAR1Info, .-nvmlVgpuTypeGetBAR1Info
	.globl nvmlVgpuTypeGetCapabilities
	.hidden nvmlVgpuTypeGetCapabilities
	.type nvmlVgpuTypeGetCapabilities, @function
nvmlVgpuTypeGetCapabilities:
	endbr64
	jmp *velocpy_nvml_table+3048(%rip)
	.size nvmlVgpuTypeGetCapabilities, .-nvmlVgpuTypeGetCapabilities
	.globl nvmlVgpuTypeGetClass
	.hidden nvmlVgpuTypeGetClass
	.type nvmlVgpuTypeGetClass, @function
nvmlVgpuTypeGetClass:
	endbr64
	jmp *velocpy_nvml_table+3056(%rip)
	.size nvmlVgpuTypeGetClass, .-nvmlVgpuTypeGetClass
	.globl nvmlVgpuTypeGetDeviceID
	.hidden nvmlVgpuTypeGetDeviceID
	.type nvmlVgpuTypeGetDeviceID, @function
nvmlVgpuTypeGetDeviceID:
	endbr64
	jmp *velocpy_nvml_table+3064(%rip)
	.size nvmlVgpuTypeGetDeviceID, .-nvmlVgpuTypeGetDeviceID
	.globl nvmlVgpuTypeGetFbReservation
	.hidden nvmlVgpuTypeGetFbReservation
	.type nvmlVgpuTypeGetFbReservation, @function
nvmlVgpuTypeGetFbReservation:
	endbr64
	jmp *velocpy_nvml_table+3072(%rip)
	.size nvmlVgpuTypeGetFbReservation, .-nvmlVgpuTypeGetFbReservation
	.globl nvmlVgpuTypeGetFrameRateLimit
	.hidden nvmlVgpuTypeGetFrameRateLimit
	.type nvmlVgpuTypeGetFrameRateLimit, @function
nvmlVgpuTypeGetFrameRateLimit:
	endbr64
	jmp *velocpy_nvml_table+3080(%rip)
	.size nvmlVgpuTypeGetFrameRateLimit, .-nvmlVgpuTypeGetFrameRateLimit
	.globl nvmlVgpuTypeGetFramebufferSize
	.hidden nvmlVgpuTypeGetFramebufferSize
	.type nvmlVgpuTypeGetFramebufferSize, @function
nvmlVgpuTypeGetFramebufferSize:
	endbr64
	jmp *velocpy_nvml_table+3088(%rip)
	.size nvmlVgpuTypeGetFramebufferSize, .-nvmlVgpuTypeGetFramebufferSize
	.globl nvmlVgpuTypeGetGpuInstanceProfileId
	.hidden nvmlVgpuTypeGetGpuInstanceProfileId
	.type nvmlVgpuTypeGetGpuInstanceProfileId, @function
nvmlVgpuTypeGetGpuInstanceProfileId:
	endbr64
	jmp *velocpy_nvml_table+3096(%rip)
	.size nvmlVgpuTypeGetGpuInstanceProfileId, .-nvmlVgpuTypeGetGpuInstanceProfileId
	.globl nvmlVgpuTypeGetGspHeapSize
	.hidden nvmlVgpuTypeGetGspHeapSize
	.type nvmlVgpuTypeGetGspHeapSize, @function
nvmlVgpuTypeGetGspHeapSize:
	endbr64
	jmp *velocpy_nvml_table+3104(%rip)
	.size nvmlVgpuTypeGetGspHeapSize, .-nvmlVgpuTypeGetGspHeapSize
	.globl nvmlVgpuTypeGetLicense
	.hidden nvmlVgpuTypeGetLicense
	.type nvmlVgpuTypeGetLicense, @function
nvmlVgpuTypeGetLicense:
	endbr64
	jmp *velocpy_nvml_table+3112(%rip)
	.size nvmlVgpuTypeGetLicense, .-nvmlVgpuTypeGetLicense
	.globl nvmlVgpuTypeGetMaxInstances
	.hidden nvmlVgpuTypeGetMaxInstances
	.type nvmlVgpuTypeGetMaxInstances, @function
nvmlVgpuTypeGetMaxInstances:
	endbr64
	jmp *velocpy_nvml_table+3120(%rip)
	.size nvmlVgpuTypeGetMaxInstances, .-nvmlVgpuTypeGetMaxInstances
	.globl nvmlVgpuTypeGetMaxInstancesPerGpuInstance
	.hidden nvmlVgpuTypeGetMaxInstancesPerGpuInstance
	.type nvmlVgpuTypeGetMaxInstancesPerGpuInstance, @function
nvmlVgpuTypeGetMaxInstancesPerGpuInstance:
	endbr64
	jmp *velocpy_nvml_table+3128(%rip)
	.size nvmlVgpuTypeGetMaxInstancesPerGpuInstance, .-nvmlVgpuTypeGetMaxInstancesPerGpuInstance
	.globl nvmlVgpuTypeGetMaxInstancesPerVm
	.hidden nvmlVgpuTypeGetMaxInstancesPerVm
	.type nvmlVgpuTypeGetMaxInstancesPerVm, @function
nvmlVgpuTypeGetMaxInstancesPerVm:
	endbr64
	jmp *velocpy_nvml_table+3136(%rip)
	.size nvmlVgpuTypeGetMaxInstancesPerVm, .-nvmlVgpuTypeGetMaxInstancesPerVm
	.globl nvmlVgpuTypeGetName
	.hidden nvmlVgpuTypeGetName
	.type nvmlVgpuTypeGetName, @function
nvmlVgpuTypeGetName:
	endbr64
	jmp *velocpy_nvml_table+3144(%rip)
	.size nvmlVgpuTypeGetName, .-nvmlVgpuTypeGetName
	.globl nvmlVgpuTypeGetNumDisplayHeads
	.hidden nvmlVgpuTypeGetNumDisplayHeads
	.type nvmlVgpuTypeGetNumDisplayHeads, @function
nvmlVgpuTypeGetNumDisplayHeads:
	endbr64
	jmp *velocpy_nvml_table+3152(%rip)
	.size nvmlVgpuTypeGetNumDisplayHeads, .-nvmlVgpuTypeGetNumDisplayHeads
	.globl nvmlVgpuTypeGetResolution
	.hidden nvmlVgpuTypeGetResolution
	.type nvmlVgpuTypeGetResolution, @function
nvmlVgpuTypeGetResolution:
	endbr64
	jmp *velocpy_nvml_table+3160(%rip)
	.size nvmlVgpuTypeGetResolution, .-nvmlVgpuTypeGetResolution
	.section .note.GNU-stack,"",%progbits
