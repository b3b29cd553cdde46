"""Memory management: addition, deletion and their judges (Xiong et al.)."""
